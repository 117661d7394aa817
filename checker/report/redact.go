package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"linearize.example/traces"
)

// Redactor replaces what identifies somebody by stable pseudonyms: "sg-1", "acct-1", "role-1", "session-1", "key-1",
// "ip-1", "tgb-1", "file-1". One original has one pseudonym in everything that one Redactor rewrites, numbered in the order
// of first appearance. Ports, protocols, prefix lengths, times, call names, error codes and releases stay, and so do
// 0.0.0.0/0 and ::/0.
//
// It finds names by their form (AWS ids, ARNs, account ids, addresses, UUIDs), and by what it has learned: the fields of
// the report and of the history that hold roles, sessions, TGBs, paths and the like. A name that no such field has and that
// has no such form, say a customer's domain in an error text, is not found.
type Redactor struct {
	names     map[string]name       // learned, by the original
	lengths   map[string][]int      // lengths of the learned originals, longest first, by their first two bytes
	asked     map[string]bool       // what know has seen
	texts     map[string]string     // what text has answered, for strings that come again and again
	pseudonym map[[2]string]string  // by class and original
	taken     map[string]bool       // originals seen and pseudonyms given
	count     map[string]int        // by class
	processes map[string]bool       // names of callers, to be replaced where they are a whole field
	onlySeen  func(original string) // set while originals are collected
}

// name is what has been learned of an original: its class, and of whom it is another name.
type name struct{ class, original string }

// NewRedactor returns a Redactor that knows the names in a history and in bindings; both may be nil.
func NewRedactor(h *traces.History, bindings []traces.Binding) *Redactor {
	d := &Redactor{names: map[string]name{}, lengths: map[string][]int{}, asked: map[string]bool{}, pseudonym: map[[2]string]string{},
		taken: map[string]bool{}, count: map[string]int{}, processes: map[string]bool{}}
	if h != nil {
		d.learn(reflect.ValueOf(*h))
	}
	for _, b := range bindings {
		d.know("tgb", b.Name)
	}
	return d
}

// Report returns a redacted copy of a report.
func (d *Redactor) Report(r *Report) *Report {
	out := d.rewriteAll(reflect.ValueOf(*r)).Interface().(Report)
	return &out
}

// History returns a redacted copy of a history.
func (d *Redactor) History(h *traces.History) *traces.History {
	out := d.rewriteAll(reflect.ValueOf(*h)).Interface().(traces.History)
	return &out
}

func (d *Redactor) rewriteAll(v reflect.Value) reflect.Value {
	d.learn(v)
	d.onlySeen = func(original string) { d.taken[original] = true }
	d.texts = map[string]string{}
	newWalk(d.field).value(v, "")
	d.onlySeen = nil
	d.texts = map[string]string{}
	defer func() { d.texts = nil }()
	return newWalk(d.field).value(v, "")
}

// kept are the fields that hold the tool's or AWS's own words.
var kept = map[string]bool{
	"Report.Schema": true, "Input.Format": true, "Linearity.Result": true, "Linearity.Mutations": true, "Property.Name": true,
	"Property.Meaning": true, "Finding.Kind": true, "Row.Kind": true, "Process.Release": true, "Promise.Release": true,
	"Option.Name": true, "Operation.Op": true, "Rule.Protocol": true, "Observation.Kind": true, "Note.Kind": true,
	"Source.Position": true, "Caller.InvokedBy": true,
}

// classes are the fields that hold one name, and the names' classes.
var classes = map[string]string{
	"Group.GroupID": "sg", "Operation.Group": "sg", "Observation.Group": "sg",
	"Process.Role": "role", "Caller.Role": "role", "Process.Session": "session", "Caller.Session": "session",
	"Process.AccessKeyID": "key", "Caller.AccessKeyID": "key", "Caller.Account": "acct",
	"Process.SourceAddress": "host", "Caller.SourceAddress": "host",
	"Observation.TGB": "tgb", "Operation.TargetGroup": "tg", "Target.ID": "target",
	"Operation.EventID": "event", "Operation.RequestID": "event", "Operation.RuleIDs": "sgr", "IdentifiedPermission.ID": "sgr",
	"RuleUpdate.ID": "sgr", "Permission.Description": "description", "Input.Path": "file",
	"Process.ID": "process", "Ref.Process": "process", "Row.Process": "process", "Operation.Process": "process",
	"Observation.Process": "process",
}

// walk copies values and passes each string through rewrite, with its field's name, "Type.Field". Shared pointers stay
// shared.
type walk struct {
	rewrite func(field, s string) string
	seen    map[uintptr]reflect.Value
	fields  map[reflect.Type][]string
}

func newWalk(f func(field, s string) string) *walk {
	return &walk{f, map[uintptr]reflect.Value{}, map[reflect.Type][]string{}}
}

// names are the fields of a struct as rewrite is told of them.
func (w *walk) names(t reflect.Type) []string {
	list, ok := w.fields[t]
	if !ok {
		for i := range t.NumField() {
			list = append(list, t.Name()+"."+t.Field(i).Name)
		}
		w.fields[t] = list
	}
	return list
}

func (w *walk) value(v reflect.Value, field string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(w.rewrite(field, v.String())).Convert(v.Type())
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i, name := range w.names(v.Type()) {
			out.Field(i).Set(w.value(v.Field(i), name))
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(w.value(v.Index(i), field))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			out.SetMapIndex(k, w.value(v.MapIndex(k), field))
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		if out, ok := w.seen[v.Pointer()]; ok && out.Type() == v.Type() {
			return out
		}
		out := reflect.New(v.Type().Elem())
		w.seen[v.Pointer()] = out
		out.Elem().Set(w.value(v.Elem(), field))
		return out
	}
	return v
}

// learn collects the names that a value's fields hold.
func (d *Redactor) learn(v reflect.Value) {
	agents := map[string]bool{}
	var processes []string
	newWalk(func(field, s string) string {
		switch class := classes[field]; {
		case field == "Process.UserAgent" || field == "Caller.UserAgent":
			for _, word := range strings.Fields(s) {
				agents[word] = true
			}
		case class == "process":
			processes = append(processes, s)
		case field == "Option.Value" && extension.MatchString(s):
			d.know("file", s)
		case class != "" && !keptName(class, s):
			d.know(class, s)
		}
		return s
	}).value(v, "")
	for _, s := range processes {
		base, _, _ := strings.Cut(s, "#")
		if s != "" && !agents[base] && !plainProcess.MatchString(s) && !d.holdsName(s) {
			d.processes[s] = true
			d.know("process", s)
		}
	}
}

// holdsName reports whether a text has something to be replaced.
func (d *Redactor) holdsName(s string) bool {
	before, found := d.onlySeen, false
	d.onlySeen = func(string) { found = true }
	d.text(s)
	d.onlySeen = before
	return found
}

// plainProcess matches names of processes that name nobody.
var plainProcess = regexp.MustCompile(`^(lbc|controller|process|caller|client|worker|leader|recorder)([-# ]?[0-9]{1,4})?$`)

var serviceName = regexp.MustCompile(`^([a-z0-9-]+\.amazonaws\.com(\.cn)?|AWS Internal)$`)

// keptName reports whether a field's value is no name to be hidden.
func keptName(class, s string) bool {
	switch class {
	case "host":
		return serviceName.MatchString(s)
	case "description":
		return strings.Contains(s, "elbv2.k8s.aws/")
	case "file":
		return s == "-"
	}
	return false
}

// know learns a name, unless its form gives it away.
func (d *Redactor) know(class, s string) {
	if d.asked[s] {
		return
	}
	d.asked[s] = true
	if _, group, ok := strings.Cut(s, "targetgroup/"); ok && class == "tg" {
		for part := range strings.SplitSeq(group, "/") { // its name and its number
			d.add(part, name{"tg", group})
		}
	}
	if s == "" || d.wholePattern(s) {
		return
	}
	d.add(s, name{class, s})
	switch class {
	case "tgb":
		if namespace, own, ok := strings.Cut(s, "/"); ok {
			d.add(own, name{"tgb", s})
			d.add(namespace, name{"ns", namespace})
		}
	case "file":
		d.add(path.Base(s), name{"file", s})
	}
}

func (d *Redactor) add(s string, n name) {
	if d.names[s].class != "" || s == "" {
		return
	}
	d.names[s] = n
	if !inTexts(s) {
		return
	}
	list := d.lengths[s[:2]]
	i, found := slices.BinarySearchFunc(list, len(s), func(a, b int) int { return cmp.Compare(b, a) })
	if !found {
		d.lengths[s[:2]] = slices.Insert(list, i, len(s))
	}
}

// inTexts reports whether a name is replaced inside of texts, and not only where it is a whole field: not if it is too
// short to name anybody, or a word that the tool itself uses.
func inTexts(s string) bool {
	return len(s) >= 2 && (len(s) >= 6 || strings.Trim(s, "0123456789") != "") && !slices.Contains(ownWords, s)
}

var ownWords = strings.Fields("an as at by in is it no of ok on or to and any are but for had its key may not one the was who " +
	"all tcp udp icmp icmpv6 from rule rules role roles session sessions call calls line record target targets default kube-system shared " +
	"controller authorize revoke describe register deregister modify group groups port ports open window windows leader skipped " +
	"deferred violated possible unknown holds history cloudtrail lbc unmanaged managed")

// field rewrites the string of a field.
func (d *Redactor) field(field, s string) string {
	switch {
	case s == "" || kept[field]:
		return s
	case field == "Group.Visualization":
		return d.visualization(s)
	case classes[field] == "process":
		if d.processes[s] {
			return d.give("process", s)
		}
		return d.text(s)
	}
	if class := classes[field]; class != "" && !keptName(class, s) {
		if n, ok := d.names[s]; ok {
			return d.give(n.class, n.original)
		}
		return d.text(s)
	}
	return d.text(s)
}

// give returns an original's pseudonym.
func (d *Redactor) give(class, original string) string {
	if d.onlySeen != nil {
		d.onlySeen(original)
		return original
	}
	key := [2]string{class, original}
	if p, ok := d.pseudonym[key]; ok {
		return p
	}
	for {
		d.count[class]++
		p := fmt.Sprintf("%s-%d", class, d.count[class])
		if class == "file" {
			p += extension.FindString(original)
		}
		if !d.taken[p] {
			d.taken[p] = true
			d.pseudonym[key] = p
			return p
		}
	}
}

// extension matches what a file's name ends with.
var extension = regexp.MustCompile(`(\.(json|ndjson|jsonl|log|txt|csv|yaml|yml|tar|zip|gz|bz2|zst))+$`)

// visualization rewrites the strings of the data in Porcupine's document; a document of another shape is left out.
func (d *Redactor) visualization(document string) string {
	const start = "const data = "
	i := strings.Index(document, start)
	if i < 0 {
		return ""
	}
	i += len(start)
	end := strings.IndexByte(document[i:], '\n')
	if end < 0 {
		return ""
	}
	decoder := json.NewDecoder(strings.NewReader(document[i : i+end]))
	decoder.UseNumber()
	var data any
	if decoder.Decode(&data) != nil {
		return ""
	}
	out, err := json.Marshal(d.tree(data))
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	b.WriteString(document[:i])
	b.Write(out)
	b.WriteString(document[i+end:])
	return b.String()
}

// tree rewrites the strings of decoded JSON.
func (d *Redactor) tree(v any) any {
	switch v := v.(type) {
	case string:
		return d.text(v)
	case []any:
		for i := range v {
			v[i] = d.tree(v[i])
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			v[k] = d.tree(v[k])
		}
	}
	return v
}
