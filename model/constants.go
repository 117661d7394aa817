package model

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"linearize.example/model/tlccfg"
)

// ConstantsOf reads the constants of a TLC configuration. Every constant of the specification must
// have a value, and no other may. The design's name is the configuration's.
func ConstantsOf(c *tlccfg.Config) (Constants, error) {
	var out Constants
	unread := maps.Clone(c.Constants)
	var failed []error
	fill := func(fields reflect.Value) {
		for i := range fields.NumField() {
			name, field := fields.Type().Field(i).Name, fields.Field(i)
			if name == "Name" || name == "Design" {
				continue
			}
			delete(unread, name)
			failed = append(failed, setConstant(c, name, field))
		}
	}
	fill(reflect.ValueOf(&out).Elem())
	fill(reflect.ValueOf(&out.Design).Elem())
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		failed = append(failed, fmt.Errorf("constant %s is not one of the specification", name))
	}
	out.Design.Name = c.Design
	return out, errors.Join(failed...)
}

func setConstant(c *tlccfg.Config, name string, field reflect.Value) error {
	if field.Kind() == reflect.Bool {
		b, err := c.Bool(name)
		field.SetBool(b)
		return err
	}
	if _, isSet := c.Constants[name].([]tlccfg.Value); !isSet {
		n, err := c.Int(name)
		field.SetInt(int64(n))
		return err
	}
	set, err := c.Set(name)
	if err != nil {
		return err
	}
	for i := range set {
		if !slices.Contains(set, tlccfg.Value(i+1)) {
			return fmt.Errorf("constant %s is %v; it must be {1, ..., n}", name, set)
		}
	}
	field.SetInt(int64(len(set)))
	return nil
}
