package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// WriteJSON writes the report in the stable form linearize.report/v1. Lists are never null, except a row's rules,
// where null means unknown. Equal reports give equal bytes. Strings of the capture are kept as they are; characters
// that a terminal or a viewer might obey are written as JSON escapes.
func WriteJSON(w io.Writer, r *Report) error {
	out := fillLists(reflect.ValueOf(*r), "").Interface().(Report)
	out.Schema = Schema
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// MarshalJSON leaves the fields of repair-bound out of the other properties.
func (p Property) MarshalJSON() ([]byte, error) {
	type plain Property
	if p.Name == "repair-bound" {
		return marshal(plain(p))
	}
	return marshal(struct {
		Name    string   `json:"name"`
		Verdict Verdict  `json:"verdict"`
		Vacuous bool     `json:"vacuous"`
		Meaning string   `json:"meaning"`
		Reason  string   `json:"reason"`
		Windows []Window `json:"windows"`
		Hidden  int      `json:"windows_hidden"`
	}{p.Name, p.Verdict, p.Vacuous, p.Meaning, p.Reason, p.Windows, p.Hidden})
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// fillLists copies a value, giving an empty list for every nil one but Row.Rules.
func fillLists(v reflect.Value, field string) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(fillLists(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name))
		}
		return out
	case reflect.Slice:
		if v.IsNil() && field == "Row.Rules" {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(fillLists(v.Index(i), field))
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(fillLists(v.Elem(), field))
		return out
	}
	return v
}

// escapeJSON writes unprintable characters, which can stand only inside of strings, as \u escapes. The encoder
// has escaped the ASCII ones but for DEL.
func escapeJSON(b []byte) []byte {
	var out []byte
	kept := 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf && b[i] != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if isUnsafe(r) {
			out = append(out, b[kept:i]...)
			if r > 0xffff {
				r -= 0x10000
				out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			kept = i + n
		}
		i += n
	}
	return append(out, b[kept:]...)
}
