package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"linearize.example/traces"
)

// SniffBindings reports whether a stream that begins with prefix looks like TargetGroupBindings of Kubernetes.
func SniffBindings(prefix []byte) bool {
	keys := topKeys(prefix)
	if !keys["apiVersion"] {
		return false
	}
	return bytes.Contains(prefix, []byte("TargetGroupBinding")) ||
		keys["items"] && (bytes.Contains(prefix, []byte("items: []")) || bytes.Contains(prefix, []byte(`"items": []`)) ||
			bytes.Contains(prefix, []byte(`"items":[]`)))
}

// The parts of a TargetGroupBinding (apis/elbv2/v1beta1/targetgroupbinding_types.go) and of a list of Kubernetes.
type (
	object struct {
		Kind     string            `json:"kind"`
		Metadata metadata          `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
		Spec     spec              `json:"spec"`
	}
	metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		CreationTimestamp string            `json:"creationTimestamp"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
		// Continue is a list's, when there is a next page.
		Continue string `json:"continue"`
	}
	spec struct {
		TargetGroupARN string      `json:"targetGroupARN"`
		TargetType     string      `json:"targetType"`
		Networking     *networking `json:"networking"`
	}
	networking struct {
		Ingress []ingressRule `json:"ingress"`
	}
	ingressRule struct {
		From  []peer `json:"from"`
		Ports []port `json:"ports"`
	}
	peer struct {
		IPBlock       *ipBlock       `json:"ipBlock"`
		SecurityGroup *securityGroup `json:"securityGroup"`
	}
	ipBlock struct {
		CIDR string `json:"cidr"`
	}
	securityGroup struct {
		GroupID string `json:"groupID"`
	}
	port struct {
		Protocol string `json:"protocol"`
		Port     any    `json:"port"`
	}
)

// checkpointAnnotation holds the hash of what the last full reconcile saw (pkg/targetgroupbinding/utils.go).
const checkpointAnnotation = "elbv2.k8s.aws/checkpoint"

// ReadBindings reads TargetGroupBindings in the order of the input: a List, one object, several documents, or a bare
// list. Objects of other kinds are left out. A page that is not the last one fails with ErrIncomplete. Errors name the
// document, the binding and the field.
func ReadBindings(r io.Reader) ([]traces.Binding, error) {
	docs, err := documents(r)
	if err != nil {
		return nil, err
	}
	var all []traces.Binding
	for _, d := range docs {
		if bytes.HasPrefix(bytes.TrimSpace(d.json), []byte("[")) {
			var items []json.RawMessage
			if err := decode(d.name, d.json, &items); err != nil {
				return nil, err
			}
			if all, err = appendItems(all, d.name, items); err != nil {
				return nil, err
			}
			continue
		}
		var o object
		if err := decode(d.name, d.json, &o); err != nil {
			return nil, err
		}
		switch {
		case o.Kind == "TargetGroupBinding":
			b, err := binding(d.name, &o)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		case strings.HasSuffix(o.Kind, "List"):
			if o.Metadata.Continue != "" {
				return nil, fmt.Errorf("%s: %w: metadata.continue is set; list without a limit", d.name, ErrIncomplete)
			}
			if all, err = appendItems(all, d.name, o.Items); err != nil {
				return nil, err
			}
		case o.Kind == "":
			return nil, fmt.Errorf("%s: it has no kind; expected `kubectl get targetgroupbindings -A -o json`", d.name)
		}
	}
	return all, nil
}

func appendItems(all []traces.Binding, where string, items []json.RawMessage) ([]traces.Binding, error) {
	for i, raw := range items {
		where := fmt.Sprintf("%s, items[%d]", where, i)
		var o object
		if err := decode(where, raw, &o); err != nil {
			return nil, err
		}
		if o.Kind != "" && o.Kind != "TargetGroupBinding" {
			continue
		}
		b, err := binding(where, &o)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func binding(where string, o *object) (traces.Binding, error) {
	b := traces.Binding{
		TargetGroup: o.Spec.TargetGroupARN, TargetType: o.Spec.TargetType,
		Created: traces.Beginning, Deleted: traces.Forever,
		Checkpoint: o.Metadata.Annotations[checkpointAnnotation],
	}
	if o.Metadata.Name == "" {
		return b, fmt.Errorf("%s.metadata.name: is missing", where)
	}
	namespace := o.Metadata.Namespace
	if namespace == "" {
		namespace = "default"
	}
	b.Name = namespace + "/" + o.Metadata.Name
	where += " (" + b.Name + ")"
	for _, stamp := range []struct {
		field, value string
		to           *traces.Instant
	}{
		{"creationTimestamp", o.Metadata.CreationTimestamp, &b.Created},
		{"deletionTimestamp", o.Metadata.DeletionTimestamp, &b.Deleted},
	} {
		if stamp.value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, stamp.value)
		if err != nil {
			return b, fmt.Errorf("%s.metadata.%s: %w", where, stamp.field, err)
		}
		*stamp.to = traces.At(t)
	}
	if o.Spec.Networking == nil {
		return b, nil
	}
	for i, rule := range o.Spec.Networking.Ingress {
		where := fmt.Sprintf("%s.spec.networking.ingress[%d]", where, i)
		needs, err := rule.needs(where)
		if err != nil {
			return b, err
		}
		b.Needs = append(b.Needs, needs...)
	}
	return b, nil
}

// needs lists the ports that a rule asks for, each for each peer. Without ports it asks for all ports of TCP, as the
// type's comment says; the controller, up to v3.5.0, grants nothing for such a rule, because the inner permissions of
// computeIngressPermissionsForTGBNetworking hide the outer ones.
func (rule *ingressRule) needs(where string) ([]traces.Need, error) {
	ports := rule.Ports
	if len(ports) == 0 {
		ports = []port{{}}
	}
	var all []traces.Need
	for i, peer := range rule.From {
		source, err := peer.source(fmt.Sprintf("%s.from[%d]", where, i))
		if err != nil {
			return nil, err
		}
		for j, p := range ports {
			need, err := p.need(fmt.Sprintf("%s.ports[%d]", where, j))
			if err != nil {
				return nil, err
			}
			need.Source = source
			all = append(all, need)
		}
	}
	return all, nil
}

func (p *peer) source(where string) (string, error) {
	switch {
	case p.IPBlock != nil && p.SecurityGroup != nil:
		return "", fmt.Errorf("%s: it has both ipBlock and securityGroup", where)
	case p.IPBlock != nil && p.IPBlock.CIDR != "":
		return traces.CanonicalSource(p.IPBlock.CIDR), nil
	case p.IPBlock != nil:
		return "", fmt.Errorf("%s.ipBlock.cidr: is missing", where)
	case p.SecurityGroup != nil && p.SecurityGroup.GroupID != "":
		return p.SecurityGroup.GroupID, nil
	case p.SecurityGroup != nil:
		return "", fmt.Errorf("%s.securityGroup.groupID: is missing", where)
	}
	return "", fmt.Errorf("%s: it has neither ipBlock nor securityGroup", where)
}

// need reads protocol (TCP where it is missing) and port: a number, a name, or nothing for all ports.
func (p *port) need(where string) (traces.Need, error) {
	n := traces.Need{Protocol: "tcp"}
	switch p.Protocol {
	case "", "TCP":
	case "UDP":
		n.Protocol = "udp"
	default:
		return n, fmt.Errorf("%s.protocol: %q is neither TCP nor UDP", where, p.Protocol)
	}
	var number int64
	switch value := p.Port.(type) {
	case nil:
		n.Port = -1
		return n, nil
	case float64:
		number = int64(value)
		if float64(number) != value {
			return n, fmt.Errorf("%s.port: %v is no port", where, value)
		}
	case string:
		var err error
		if number, err = strconv.ParseInt(value, 10, 32); err != nil {
			if value == "" {
				return n, fmt.Errorf("%s.port: the name is empty", where)
			}
			n.PortName = value
			return n, nil
		}
	default:
		return n, fmt.Errorf("%s.port: is neither a number nor a name", where)
	}
	switch {
	case number < 0 || number > 65535:
		return n, fmt.Errorf("%s.port: %d is outside of 0..65535", where, number)
	case number == 0:
		number = -1 // computeRestrictedIngressPermissionsPerSG makes all ports of it
	}
	n.Port = int32(number)
	return n, nil
}
