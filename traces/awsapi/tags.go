package awsapi

import (
	"fmt"
	"slices"
	"strings"

	"linearize.example/traces"
)

var tagActions = map[string]action{
	"CreateTags":   {lag: "tags", params: "ResourceId Tag", do: (*request).createTags},
	"DeleteTags":   {lag: "tags", params: "ResourceId Tag", do: (*request).deleteTags},
	"DescribeTags": {params: "Filter MaxResults NextToken", do: (*request).listTags},
}

// readTags reads a list of tags and checks what AWS checks.
func readTags(p *params, list string) ([]tag, error) {
	var all []tag
	for _, item := range p.list(list) {
		t := tag{item.text("Key"), item.text("Value")}
		switch {
		case t.key == "":
			return nil, missing("Tag.Key")
		case len(t.key) > 128:
			return nil, invalid("Tag key exceeds the maximum length of 128 characters")
		case len(t.value) > 256:
			return nil, invalid("Tag value exceeds the maximum length of 256 characters")
		case strings.HasPrefix(strings.ToLower(t.key), "aws:"):
			return nil, invalid("Tag keys starting with 'aws:' are reserved for internal use")
		case slices.ContainsFunc(all, func(o tag) bool { return o.key == t.key }):
			return nil, invalid("Tag keys must be unique: %s appears multiple times", t.key)
		}
		all = append(all, t)
	}
	if len(all) > tagLimit {
		return nil, &Refusal{"TagLimitExceeded", "The maximum number of Tags for a resource has been reached."}
	}
	return all, nil
}

// tagSpecification reads the tags that a request has for the resources it makes.
func (r *request) tagSpecification(kind string) ([]tag, error) {
	var all []tag
	for _, spec := range r.p.list("TagSpecification") {
		if of := spec.text("ResourceType"); of != kind {
			return nil, invalid("'%s' is not a valid taggable resource type for this operation.", of)
		}
		tags, err := readTags(spec, "Tag")
		if err != nil {
			return nil, err
		}
		all = append(all, tags...)
	}
	return all, nil
}

// taggable checks that a resource exists.
func (r *request) taggable(id string) error {
	prefix, _, _ := strings.Cut(id, "-")
	kind, known := resourceKinds[prefix]
	if !known {
		return &Refusal{"InvalidID", fmt.Sprintf("The ID '%s' is not valid", id)}
	}
	if !r.exists(id) {
		return &Refusal{kind.missing, fmt.Sprintf("The %s ID '%s' does not exist", kind.name, id)}
	}
	return nil
}

// resourceKinds are the kinds of resources by the prefix of their ids: how DescribeTags names them, and the code of the
// error that one does not exist.
var resourceKinds = map[string]struct{ name, missing string }{
	"sg":     {"security-group", "InvalidGroup.NotFound"},
	"sgr":    {"security-group-rule", "InvalidSecurityGroupRuleId.NotFound"},
	"vpc":    {"vpc", "InvalidVpcID.NotFound"},
	"subnet": {"subnet", "InvalidSubnetID.NotFound"},
	"eni":    {"network-interface", "InvalidNetworkInterfaceID.NotFound"},
	"i":      {"instance", "InvalidInstanceID.NotFound"},
}

func (r *request) exists(id string) bool {
	if _, ok := r.groups.current(id); ok {
		return true
	}
	if strings.HasPrefix(id, "sgr-") {
		return slices.ContainsFunc(r.groupsAt(traces.Forever), func(g *group) bool { return g.byID(id) != nil })
	}
	return r.vpc(id) != nil || r.subnet(id) != nil ||
		slices.ContainsFunc(r.interfaces, func(n *networkInterface) bool { return n.id == id }) ||
		slices.ContainsFunc(r.instances, func(i *instance) bool { return i.id == id })
}

func (r *request) createTags() error {
	ids := r.p.texts("ResourceId")
	tags, err := readTags(r.p, "Tag")
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return missing("resourceIdSet")
	case len(tags) == 0:
		return missing("tagSet")
	}
	for _, id := range ids {
		if err := r.taggable(id); err != nil {
			return err
		}
		has := r.tagsAt(id, traces.Forever)
		n := len(has)
		for _, t := range tags {
			if !slices.ContainsFunc(has, func(o tag) bool { return o.key == t.key }) {
				n++
			}
		}
		if n > tagLimit {
			return &Refusal{"TagLimitExceeded", "The maximum number of Tags for a resource has been reached."}
		}
	}
	for _, id := range ids {
		for _, t := range tags {
			r.setTag(id, t, r.now, r.visible)
		}
	}
	r.x.flag("return", true)
	return nil
}

// deleteTags removes tags; those with a value only where they have it, and all of a resource if the request names none
// (API_DeleteTags).
func (r *request) deleteTags() error {
	ids := r.p.texts("ResourceId")
	if len(ids) == 0 {
		return missing("resourceIdSet")
	}
	for _, id := range ids {
		if err := r.taggable(id); err != nil {
			return err
		}
	}
	items := r.p.list("Tag")
	for _, id := range ids {
		l := r.tags[id]
		if l == nil {
			continue
		}
		for _, has := range r.tagsAt(id, traces.Forever) {
			if len(items) == 0 || slices.ContainsFunc(items, func(item *params) bool {
				return item.text("Key") == has.key && (!item.has("Value") || item.text("Value") == has.value)
			}) {
				l.remove(has.key, r.now, r.visible)
			}
		}
	}
	r.x.flag("return", true)
	return nil
}

func (r *request) listTags() error {
	filters, err := r.filters("key", "resource-id", "resource-type", "value", "tag:", "tag-key", "tag-value")
	if err != nil {
		return err
	}
	var ids []string
	for id := range r.tags {
		if !strings.HasPrefix(id, "arn:") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var all []listed
	for _, id := range ids {
		prefix, _, _ := strings.Cut(id, "-")
		for _, t := range r.tagsAt(id, r.now) {
			if !filters.match(func(name string) []string {
				switch name {
				case "key":
					return []string{t.key}
				case "value":
					return []string{t.value}
				case "resource-id":
					return []string{id}
				case "resource-type":
					return []string{resourceKinds[prefix].name}
				}
				return tagValues([]tag{t}, name)
			}) {
				continue
			}
			all = append(all, listed{len(all), func(x *writer) {
				x.text("resourceId", id)
				x.text("resourceType", resourceKinds[prefix].name)
				x.text("key", t.key)
				x.text("value", t.value)
			}})
		}
	}
	return r.page("tagSet", all)
}

func writeTags(x *writer, tags []tag) {
	x.list("tagSet", "item", len(tags), func(i int) {
		x.text("key", tags[i].key)
		x.text("value", tags[i].value)
	})
}
