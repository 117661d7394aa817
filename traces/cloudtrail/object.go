package cloudtrail

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// object is a decoded JSON object. Its members are found without regard to case, because exports change it.
type object map[string]any

// get returns the member of that name, nil if there is none. Spelled exactly it wins; otherwise the first in the
// alphabet.
func (o object) get(name string) any {
	if v, ok := o[name]; ok {
		return v
	}
	found := ""
	for k := range o {
		if len(k) == len(name) && strings.EqualFold(k, name) && (found == "" || k < found) {
			found = k
		}
	}
	return o[found]
}

// has reports whether there is a member of that name, null or not.
func (o object) has(name string) bool {
	if _, ok := o[name]; ok {
		return true
	}
	for k := range o {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// text returns a member as text; "" for none, for null, and for the word "null", which tables print for it.
func (o object) text(names ...string) string {
	for _, name := range names {
		if s := text(o.get(name)); s != "" {
			return s
		}
	}
	return ""
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		if v == "null" {
			return ""
		}
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// dig follows a path of names, "aws.cloudtrail.error_code", through nested objects, or through members whose own names
// have dots, as Elastic stores them.
func (o object) dig(path string) any {
	if v, ok := o[path]; ok {
		return v
	}
	for i := 0; i < len(path); i++ {
		if path[i] != '.' {
			continue
		}
		if inner, ok := o[path[:i]].(map[string]any); ok {
			if v := object(inner).dig(path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// asObject returns v as an object: an object, JSON text of one, or a map as Presto and Java print it. It reports false
// for everything else; an absent value is an absent object.
func asObject(v any) (object, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case object:
		return v, true
	case string:
		inner, err := parseStructured(v)
		if err != nil {
			return nil, false
		}
		m, ok := inner.(map[string]any)
		return m, ok
	}
	return nil, false
}

// object returns a member as an object, nil if it is none.
func (o object) object(name string) object {
	m, _ := asObject(o.get(name))
	return m
}

// list returns v as a list: a list, {"items": list}, {} for an empty one, text of one of these; a single element may
// stand in place of a list of one (exports through XML do that). It fails for what cannot be a list of objects.
func list(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case object:
		return list(map[string]any(v))
	case map[string]any:
		for _, name := range []string{"items", "item", "member"} {
			if o := object(v); o.has(name) {
				return list(o.get(name))
			}
		}
		if len(v) == 0 {
			return nil, nil
		}
		return []any{v}, nil
	case string:
		if s := strings.TrimSpace(v); s == "" || s == "null" {
			return nil, nil
		}
		inner, err := parseStructured(v)
		if err != nil {
			return nil, err
		}
		return list(inner)
	}
	return nil, fmt.Errorf("%v is no list", v)
}

// parseStructured reads JSON text, or a map as Presto and Java print it.
func parseStructured(s string) (any, error) {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, errors.New("is no object")
	}
	if v, err := decode([]byte(s)); err == nil {
		return v, nil
	}
	return parseMapText(s)
}

// integer reads a whole number, or the text of one; nil for an absent value.
func integer(v any) (*int64, error) {
	s := strings.TrimSpace(text(v))
	if s == "" {
		if v == nil || v == "" || v == "null" {
			return nil, nil
		}
		return nil, errors.New("is no number")
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return &n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil, fmt.Errorf("%q is no whole number", s)
	}
	n := int64(f)
	return &n, nil
}

// isTrue reports whether v is true, or its text.
func isTrue(v any) bool { return strings.EqualFold(text(v), "true") }
