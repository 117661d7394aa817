// Package gen writes a module with types as Go: one function an action and one an operator, over values of fixed size.
package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"linearize.example/checker/conform/eval"
	"linearize.example/checker/conform/tla"
	"linearize.example/cmd/tla2go/internal/types"
)

// Options say how the Go file is to look.
type Options struct {
	Package string
	// Command is the go:generate command, for the header.
	Command string
}

type generator struct {
	p    *types.Program
	ev   *eval.Evaluator
	opts Options

	buf   *strings.Builder
	top   map[string]bool // Go names of the package and of Checker's methods
	used  map[string]bool // Go names of the function being written
	names map[*types.Instance]string
	queue []*types.Instance
	done  map[*types.Instance]bool

	literals []string
	consts   map[string]string // literal -> Go constant
	hoisted  []string          // constants and constant definitions, in use
	isHoist  map[string]bool
	memos    []memo

	typeIDs []*types.Type          // all compound types, inner before outer
	ids     map[*types.Type]string // the names of their descriptors
	nodes   []*node
	vars    map[string]*node
	primed  map[string]bool // variables whose next value is read
	actions []*types.Instance
	actNo   map[*types.Instance]int
}

// memo is a definition whose value is kept while a state is current.
type memo struct{ name, typ string }

// needNext is the panic when a variable's next value turns out to be read, so that it has to be computed before the
// successor is written.
type needNext struct{ name string }

// Generate returns the Go source. Errors are *tla.Error values where they concern the module.
func Generate(p *types.Program, ev *eval.Evaluator, opts Options) ([]byte, error) {
	primed := map[string]bool{}
	for {
		src, again, err := generate(p, ev, opts, primed)
		if again == "" {
			return src, err
		}
		primed[again] = true
	}
}

// generate writes the source, or names a variable that must be added to primed.
func generate(p *types.Program, ev *eval.Evaluator, opts Options, primed map[string]bool) (src []byte, again string,
	err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case needNext:
			src, again, err = nil, r.name, nil
		case *tla.Error:
			src, err = nil, r
		default:
			panic(r)
		}
	}()
	g := &generator{p: p, ev: ev, opts: opts, buf: &strings.Builder{}, top: map[string]bool{},
		names: map[*types.Instance]string{}, done: map[*types.Instance]bool{}, consts: map[string]string{},
		isHoist: map[string]bool{}, ids: map[*types.Type]string{}, vars: map[string]*node{},
		primed: primed, actNo: map[*types.Instance]int{}}
	for _, n := range []string{"Checker", "New", "NewModel", "Load", "Next", "Holds", "Within", "Output", "program",
		"state", "constants", "layout", "memos", "universes", "functions", "c", "n", "off", "w", "engine", "init", "main"} {
		g.top[n] = true
	}
	g.nameLiterals()
	g.nameTypes()
	for _, v := range p.Module.Variables {
		g.vars[v.Name] = g.node(lower(v.Name), p.Vars[v.Name])
	}
	body := g.code()
	out := g.header() + body
	src, err = format.Source([]byte(out))
	if err != nil {
		var lines []string
		for i, l := range strings.Split(out, "\n") {
			lines = append(lines, fmt.Sprintf("%d\t%s", i+1, l))
		}
		return []byte(strings.Join(lines, "\n")), "", fmt.Errorf("the generated code does not parse: %w", err)
	}
	return bytes.TrimLeft(src, "\n"), "", nil
}

func fail(pos tla.Pos, f string, args ...any) { panic(tla.Errorf(pos, f, args...)) }

func (g *generator) emit(f string, args ...any) {
	if len(args) == 0 {
		g.buf.WriteString(f)
	} else {
		fmt.Fprintf(g.buf, f, args...)
	}
	g.buf.WriteByte('\n')
}

// where names a place without the folder of its file, so that the code does not depend on where the tool ran.
func where(pos tla.Pos) string {
	pos.File = filepath.Base(pos.File)
	return pos.String()
}

// capture returns what f emits.
func (g *generator) capture(f func()) string {
	saved := g.buf
	g.buf = &strings.Builder{}
	f()
	s := g.buf.String()
	g.buf = saved
	return s
}

// scope returns what f emits inside of a Go block of its own, whose names are free again after it.
func (g *generator) scope(f func()) string {
	saved := maps.Clone(g.used)
	s := g.capture(f)
	g.used = saved
	return s
}

// single says whether code is one statement that declares nothing outside of itself.
func single(code string) bool {
	depth, lines, first := 0, 0, strings.SplitN(code, "\n", 2)[0]
	for i := range len(code) {
		switch code[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '\n':
			if depth == 0 {
				lines++
			}
		}
	}
	return lines == 1 && (strings.HasPrefix(first, "for ") || strings.HasPrefix(first, "if ") || !strings.Contains(first, ":="))
}

// mentions says whether Go code uses a name.
func mentions(code, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(code)
}

// fresh returns a Go name for a local variable, close to the given one.
func (g *generator) fresh(name string) string {
	base := lower(name)
	for i := 1; ; i++ {
		n := base
		if i > 1 {
			n += strconv.Itoa(i)
		}
		if !g.used[n] && !token.IsKeyword(n) && n != "c" && n != "n" && n != "engine" && n != "len" && n != "min" &&
			n != "max" && n != "int" && n != "true" && n != "false" && n != "bool" && n != "nil" && n != "off" {
			g.used[n] = true
			return n
		}
		if i == 1 && (n == "c" || n == "n") {
			base = n + "_"
			if !g.used[base] {
				g.used[base] = true
				return base
			}
		}
	}
}

// global returns a Go name for something at the top, close to the given one.
func (g *generator) global(name string) string {
	for i := 1; ; i++ {
		n := name
		if i > 1 {
			n += strconv.Itoa(i)
		}
		if !g.top[n] && !token.IsKeyword(n) {
			g.top[n] = true
			return n
		}
	}
}

// camel makes a Go name of a TLA+ name or a string: "see-grant" becomes SeeGrant.
func camel(s string) string {
	var b strings.Builder
	up := true
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
			up = false
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "X"
	}
	return b.String()
}

func lower(s string) string {
	s = camel(s)
	i := 0
	for i < len(s) && unicode.IsUpper(rune(s[i])) && (i == 0 || i+1 == len(s) || unicode.IsUpper(rune(s[i+1]))) {
		i++
	}
	if i == 0 {
		i = 1
	}
	if !unicode.IsLetter(rune(s[0])) {
		return "x" + s
	}
	s = strings.ToLower(s[:i]) + s[i:]
	if token.IsKeyword(s) {
		return s + "_"
	}
	return s
}

// nameLiterals numbers the strings, those of one type together.
func (g *generator) nameLiterals() {
	groups := map[*types.Type][]string{}
	var order []*types.Type
	for _, a := range g.p.Atoms {
		t := a.Find()
		if _, ok := groups[t]; !ok {
			order = append(order, t)
			groups[t] = nil
			for l := range t.Lits {
				groups[t] = append(groups[t], l)
			}
			sort.Strings(groups[t])
		}
	}
	for _, t := range order {
		for _, l := range groups[t] {
			if _, ok := g.consts[l]; !ok {
				g.consts[l] = g.global("atom" + camel(l))
				g.literals = append(g.literals, l)
			}
		}
	}
}

// nameTypes finds the compound types that variables, constants and operators use and names the structs.
func (g *generator) nameTypes() {
	for _, v := range g.p.Module.Variables {
		g.nameType(g.p.Vars[v.Name], v.Name)
	}
	for _, c := range g.p.Module.Constants {
		g.nameType(g.p.Consts[c.Name], c.Name)
	}
	for _, x := range g.p.Instances {
		g.nameType(x.Result, x.Def.Name)
		for _, prm := range x.Params {
			g.nameType(prm.Type, prm.Name)
		}
	}
}

func (g *generator) nameType(t *types.Type, hint string) {
	t = t.Find()
	if t.Scalar() || t.Kind == types.Var {
		return
	}
	for _, k := range g.typeIDs {
		if k == t {
			return
		}
	}
	switch t.Kind {
	case types.Set, types.Seq:
		g.nameType(t.Elem, singular(hint))
	case types.Opt:
		g.nameType(t.Key, hint)
		g.nameType(t.Elem, hint)
	case types.Fun:
		g.nameType(t.Key, hint+"Key")
		g.nameType(t.Elem, hint+"At")
	case types.Rec, types.Tup:
		name := camel(hint)
		for strings.HasSuffix(name, "At") && len(name) > 2 {
			name = strings.TrimSuffix(name, "At")
		}
		t.Name = g.global(name)
		for _, n := range t.Sorted() {
			g.nameType(t.Fields[n], hint+camel(n))
		}
		for i, e := range t.Tup {
			g.nameType(e, hint+strconv.Itoa(i+1))
		}
	}
	g.typeIDs = append(g.typeIDs, t)
	id := "t" + camel(hint)
	if t.Name != "" {
		id = "t" + t.Name
	}
	for i := 2; g.taken(id); i++ {
		id = "t" + camel(hint) + strconv.Itoa(i)
	}
	g.ids[t] = id
}

func (g *generator) taken(id string) bool {
	if id == "tBool" || id == "tInt" || id == "tAtom" {
		return true
	}
	for _, x := range g.ids {
		if x == id {
			return true
		}
	}
	return false
}

func singular(s string) string {
	if len(s) > 3 && strings.HasSuffix(s, "s") {
		return s[:len(s)-1]
	}
	return s
}

// goType is the Go type of values.
func (g *generator) goType(t *types.Type) string {
	t = t.Find()
	switch t.Kind {
	case types.Bool:
		return "bool"
	case types.Int, types.Var:
		return "int"
	case types.Atom:
		return "engine.Atom"
	case types.Set:
		if t.Elem.Bits() {
			return "engine.Set"
		}
		return "engine.List[" + g.goType(t.Elem) + "]"
	case types.Seq:
		return "engine.Seq[" + g.goType(t.Elem) + "]"
	case types.Opt:
		return "engine.Opt[" + g.goType(t.Elem) + "]"
	case types.Fun:
		return "[engine.FunCap]" + g.goType(t.Elem)
	}
	if t.Name == "" {
		g.nameType(t, "Value")
	}
	return t.Name
}

// id is the name of a compound type's descriptor.
func (g *generator) id(t *types.Type) string {
	t = t.Find()
	switch t.Kind {
	case types.Bool:
		return "tBool"
	case types.Int, types.Var:
		return "tInt"
	case types.Atom:
		return "tAtom"
	}
	if _, ok := g.ids[t]; !ok {
		g.nameType(t, "Value")
	}
	return g.ids[t]
}

// part names what belongs to a compound type in the Go code.
func (g *generator) part(t *types.Type) string { return g.id(t)[1:] }

func exported(field string) string { return camel(field) }

// hoist returns the Go expression of a constant or constant definition that is computed at the start.
func (g *generator) hoist(name string) (string, bool) {
	known := g.isHoist[name]
	if !known {
		_, isConst := g.p.Consts[name]
		d := g.p.Module.Def(name)
		if !isConst {
			if d == nil || len(d.Params) > 0 || g.p.Levels[name] != eval.Constant {
				return "", false
			}
			v, err := g.ev.Eval(&tla.Ident{At: tla.At{Pos: d.Pos}, Name: name}, nil)
			if err != nil {
				return "", false
			}
			if _, infinite := v.(eval.Infinite); infinite {
				return "", false
			}
		}
		g.isHoist[name] = true
		g.hoisted = append(g.hoisted, name)
	}
	return "c.k." + lower(name), true
}

// constType is the type of a hoisted name.
func (g *generator) constType(name string) *types.Type {
	if t := g.p.Consts[name]; t != nil {
		return t
	}
	for _, x := range g.p.Instances {
		if x.Def.Name == name {
			return x.Result
		}
	}
	if t := g.p.Functions[name]; t != nil {
		return t
	}
	return &types.Type{Kind: types.Bool}
}
