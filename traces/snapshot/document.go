// Package snapshot reads what people hand over besides a capture: the rules of groups at one time, as
// `aws ec2 describe-security-group-rules` or `describe-security-groups` prints them, and the TargetGroupBindings, as
// `kubectl get targetgroupbindings -A` prints them. Both in JSON or YAML.
package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"linearize.example/traces/internal/stream"
)

// MaxSize bounds an input, in bytes: 64 MiB are some 100,000 bindings.
const MaxSize = 64 << 20

// ErrIncomplete says that the input is one page of several.
var ErrIncomplete = errors.New("it is only a part of the answer")

// document is one JSON value of the input, or one YAML document turned into JSON.
type document struct {
	name string
	json json.RawMessage
}

// documents splits the input into its documents: one, several JSON values, or YAML documents with "---" between them.
func documents(r io.Reader) ([]document, error) {
	data, err := io.ReadAll(io.LimitReader(stream.UTF8(r), MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is longer than %d MiB", MaxSize>>20)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	if data[0] == '{' || data[0] == '[' {
		return jsonDocuments(data)
	}
	var all []document
	for i, part := range splitYAML(data) {
		name := fmt.Sprintf("document %d", i+1)
		// sigs.k8s.io/yaml refuses documents whose aliases multiply their size.
		value, err := yaml.YAMLToJSON(part)
		if err != nil {
			return nil, fmt.Errorf("%s is neither JSON nor YAML: %w", name, err)
		}
		if string(value) != "null" {
			all = append(all, document{name, value})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it holds no document")
	}
	return all, nil
}

func jsonDocuments(data []byte) ([]document, error) {
	var all []document
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		name := fmt.Sprintf("document %d", len(all)+1)
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s, at byte %d: %w", name, d.InputOffset(), err)
		}
		all = append(all, document{name, value})
	}
}

// splitYAML cuts at the lines that begin a document. Such a line is never inside of a value: those are indented.
func splitYAML(data []byte) [][]byte {
	var parts [][]byte
	start := 0
	for at := 0; at < len(data); {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if line := bytes.TrimRight(data[at:end], "\r\n \t"); bytes.Equal(line, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) {
			if part := bytes.TrimSpace(data[start:at]); len(part) > 0 {
				parts = append(parts, data[start:at])
			}
			start = at + len("---")
		}
		at = end
	}
	if part := bytes.TrimSpace(data[start:]); len(part) > 0 {
		parts = append(parts, data[start:])
	}
	return parts
}

// decode reads a document into v. A field of the wrong type is named.
func decode(where string, value json.RawMessage, v any) error {
	err := json.Unmarshal(value, v)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s.%s: is a JSON %s", where, wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// topKeys lists the keys of the first object in a prefix of the input, as far as the prefix goes: the input's own, or
// those of the first element if it is a list.
func topKeys(prefix []byte) map[string]bool {
	prefix = bytes.TrimSpace(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")))
	if len(prefix) == 0 {
		return nil
	}
	if prefix[0] != '{' && prefix[0] != '[' {
		return yamlKeys(prefix)
	}
	keys := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(prefix))
	level := 1 // of the object whose keys count
	if prefix[0] == '[' {
		level = 2
	}
	depth, isKey := 0, false
	for {
		token, err := d.Token()
		if err != nil {
			return keys
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
				isKey = t == '{'
				if level == 2 && depth == 2 && t == '[' {
					return keys
				}
				continue
			}
			depth--
			if depth < level {
				return keys
			}
			isKey = depth == level
		case string:
			if depth == level && isKey {
				keys[t] = true
				isKey = false
				continue
			}
			isKey = depth == level
		default:
			isKey = depth == level
		}
	}
}

// yamlKeys lists the keys of the lines that are not indented, up to the second document.
func yamlKeys(prefix []byte) map[string]bool {
	keys := map[string]bool{}
	for line := range bytes.Lines(prefix) {
		text := strings.TrimRight(string(line), "\r\n")
		if strings.HasPrefix(text, "---") && len(keys) > 0 {
			break
		}
		if key, _, ok := strings.Cut(strings.TrimPrefix(text, "- "), ":"); ok && key != "" && !strings.ContainsAny(key, " \t{}[]\"'") {
			keys[key] = true
		}
	}
	return keys
}
