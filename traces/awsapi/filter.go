package awsapi

import (
	"strings"
)

// filter is one filter of a describe: a resource passes if one of its values for the name matches one of the patterns.
type filter struct {
	name     string
	patterns []string
}

// filters are all filters of a describe; a resource has to pass each of them.
type filters []filter

// filters reads the filters of a request. Names that the describe does not know are refused, as EC2 does. known holds
// names; those that end in ":" are prefixes, such as "tag:".
func (r *request) filters(known ...string) (filters, error) {
	var all filters
	for _, item := range r.p.list("Filter") {
		f := filter{name: item.text("Name"), patterns: item.texts("Value")}
		ok := false
		for _, k := range known {
			if strings.HasSuffix(k, ":") {
				ok = ok || len(f.name) > len(k) && strings.HasPrefix(f.name, k)
			} else {
				ok = ok || f.name == k
			}
		}
		if !ok {
			return nil, invalid("The filter '%s' is invalid", f.name)
		}
		if len(f.patterns) > 200 {
			return nil, &Refusal{"FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200"}
		}
		all = append(all, f)
	}
	return all, nil
}

// match reports whether a resource passes; values gives what it has for a filter's name.
func (all filters) match(values func(name string) []string) bool {
	for _, f := range all {
		passes := false
		for _, value := range values(f.name) {
			for _, pattern := range f.patterns {
				passes = passes || matches(pattern, value)
			}
		}
		if !passes {
			return false
		}
	}
	return true
}

// tagValues gives what a resource's tags are for the filters tag-key, tag-value and tag:KEY.
func tagValues(tags []tag, name string) []string {
	var values []string
	for _, t := range tags {
		switch name {
		case "tag-key":
			values = append(values, t.key)
		case "tag-value":
			values = append(values, t.value)
		case "tag:" + t.key:
			values = append(values, t.value)
		}
	}
	return values
}

// matches compares a value with a filter's pattern: * stands for any text, ? for one character, and \ takes the next
// character as it is (EC2 user guide, "Use wildcards with filters"). Case counts.
func matches(pattern, value string) bool {
	p, v := []rune(pattern), []rune(value)
	// One star at a time can be retried: where a later part fails, only the last star has to take more.
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(v) {
		step := 1
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
			continue
		case i < len(p) && p[i] == '?':
		case i+1 < len(p) && p[i] == '\\' && p[i+1] == v[j]:
			step = 2
		case i < len(p) && p[i] != '\\' && p[i] == v[j]:
		case i == len(p)-1 && p[i] == '\\' && v[j] == '\\':
		case star >= 0:
			mark++
			i, j = star+1, mark
			continue
		default:
			return false
		}
		i += step
		j++
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
