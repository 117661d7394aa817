package awsapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxFile bounds a file that describes a world or faults, in bytes.
const maxFile = 64 << 20

// decodeStrict reads JSON or YAML into *v. Keys that v does not have, keys that come twice and values of another type
// are errors that name their place, such as "groups[1].vpc".
func decodeStrict(r io.Reader, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("it is longer than %d MiB", maxFile>>20)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return errors.New("it is empty")
	}
	if data[0] != '{' {
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			return fmt.Errorf("it is neither JSON nor YAML: %w", err)
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	tree, err := readTree(d, "")
	if err != nil {
		return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("at byte %d: something follows the first value", d.InputOffset())
	}
	return assign("", tree, reflect.ValueOf(v).Elem())
}

// object is a JSON object with its keys in order.
type object struct {
	keys   []string
	values map[string]any
}

// readTree reads one value: *object, []any, string, json.Number, bool or nil.
func readTree(d *json.Decoder, place string) (any, error) {
	t, err := d.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := &object{values: map[string]any{}}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			key, _ := k.(string)
			at := join(place, key)
			if _, twice := o.values[key]; twice {
				return nil, fmt.Errorf("%s is given twice", at)
			}
			o.keys = append(o.keys, key)
			if o.values[key], err = readTree(d, at); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := readTree(d, fmt.Sprintf("%s[%d]", place, len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

func join(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}

// assign puts a value of readTree into a field; null leaves it as it is.
func assign(place string, value any, to reflect.Value) error {
	if value == nil {
		return nil
	}
	if u, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, isText := value.(string); isText {
			if err := u.UnmarshalText([]byte(text)); err != nil {
				return fmt.Errorf("%s: %w", place, err)
			}
			return nil
		}
		if to.Kind() != reflect.Map { // a map may be written as a text or as an object
			return mismatch(place, value, "a text")
		}
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return assign(place, value, to.Elem())
	case reflect.String:
		text, ok := value.(string)
		if !ok {
			return mismatch(place, value, "a text")
		}
		to.SetString(text)
	case reflect.Bool:
		flag, ok := value.(bool)
		if !ok {
			return mismatch(place, value, "true or false")
		}
		to.SetBool(flag)
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		n, ok := value.(json.Number)
		if !ok {
			return mismatch(place, value, "a number")
		}
		if json.Unmarshal([]byte(n), to.Addr().Interface()) != nil {
			return fmt.Errorf("%s: %s is no number that it can have", place, n)
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return mismatch(place, value, "a list")
		}
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, item := range list {
			if err := assign(fmt.Sprintf("%s[%d]", place, i), item, to.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return assignMap(place, value, to)
	case reflect.Struct:
		return assignStruct(place, value, to)
	}
	return nil
}

func assignMap(place string, value any, to reflect.Value) error {
	o, ok := value.(*object)
	if !ok {
		return mismatch(place, value, "an object")
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, key := range o.keys {
		item := reflect.New(to.Type().Elem()).Elem()
		if err := assign(join(place, key), o.values[key], item); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key), item)
	}
	return nil
}

func assignStruct(place string, value any, to reflect.Value) error {
	o, ok := value.(*object)
	if !ok {
		return mismatch(place, value, "an object")
	}
	var names []string
	fields := map[string]reflect.Value{}
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		fields[name] = to.Field(i)
	}
	for _, key := range o.keys {
		field, known := fields[key]
		if !known {
			slices.Sort(names)
			return fmt.Errorf("%s: there is no such key; here belong %s", join(place, key), strings.Join(names, ", "))
		}
		if err := assign(join(place, key), o.values[key], field); err != nil {
			return err
		}
	}
	return nil
}

func mismatch(place string, value any, want string) error {
	is := "null"
	switch value.(type) {
	case *object:
		is = "an object"
	case []any:
		is = "a list"
	case string:
		is = "a text"
	case json.Number:
		is = "a number"
	case bool:
		is = "true or false"
	}
	if place == "" {
		place = "the document"
	}
	return fmt.Errorf("%s is %s and has to be %s", place, is, want)
}
