// Package tla reads the part of TLA+ that executable specifications of protocols use: one module over the standard
// modules. It knows syntax only; what it does not know it reports with file, line and column. The grammar and the operators' precedences are those of Lamport, "Specifying Systems", chapter 15 and the
// appendix, table 6.
package tla

import "fmt"

// Pos is a place in a source file; lines and columns count from 1, columns in characters.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Error is a problem at a place.
type Error struct {
	Pos Pos
	Msg string
}

func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Errorf returns an *Error at pos.
func Errorf(pos Pos, format string, args ...any) error {
	return &Error{pos, fmt.Sprintf(format, args...)}
}

// Module is one parsed module. Definitions keep the order of the source.
type Module struct {
	Name      string
	File      string
	Source    string
	Extends   []string
	Constants []Decl
	Variables []Decl
	Defs      []*Def
	Assumes   []Expr
	// AssumeTexts is the source of each assumption, indented as it stood.
	AssumeTexts []string
}

// Def returns the definition of that name, or nil.
func (m *Module) Def(name string) *Def {
	for _, d := range m.Defs {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Decl declares a constant or a variable.
type Decl struct {
	Name string
	Pos  Pos
}

// Def is an operator definition Name(Params) == Body, or, when Bounds is set, the function definition
// Name[Bounds] == Body. Text is its source, from the name to the end of the body.
type Def struct {
	Name      string
	Params    []Param
	Bounds    []Bound
	Body      Expr
	Recursive bool
	Pos       Pos
	Text      string
}

// Param is a formal parameter; Arity is above zero for an operator parameter such as F(_).
type Param struct {
	Name  string
	Arity int
}

// Bound is "Names \in Set"; with Tuple the names form one pattern <<a, b>>.
type Bound struct {
	Names []string
	Tuple bool
	Set   Expr
	Pos   Pos
}

// Expr is an expression, a formula or an action.
type Expr interface{ Where() Pos }

// At gives an expression its place.
type At struct{ Pos Pos }

// Where returns the place.
func (a At) Where() Pos { return a.Pos }

type (
	// Ident is a name without arguments: a constant, a variable, a bound name or an operator.
	Ident struct {
		At
		Name string
	}
	// Num is an integer literal.
	Num struct {
		At
		Value int
	}
	// Str is a string literal.
	Str struct {
		At
		Value string
	}
	// Bool is TRUE or FALSE.
	Bool struct {
		At
		Value bool
	}
	// Op applies a built-in operator: =, +, \cup, SUBSET, DOMAIN, ', UNCHANGED, [], ENABLED and so on.
	Op struct {
		At
		Name string
		Args []Expr
	}
	// Call applies a defined operator, or one of a standard module, to arguments.
	Call struct {
		At
		Name string
		Args []Expr
	}
	// And is a conjunction, from a list or from infix operators.
	And struct {
		At
		List []Expr
	}
	// Or is a disjunction.
	Or struct {
		At
		List []Expr
	}
	// Index is function application f[a] or f[a, b].
	Index struct {
		At
		Fn   Expr
		Args []Expr
	}
	// Field is r.name.
	Field struct {
		At
		Rec  Expr
		Name string
	}
	// Quant is \A or \E over bounds.
	Quant struct {
		At
		Exists bool
		Bounds []Bound
		Body   Expr
	}
	// Choose is CHOOSE x \in S : P.
	Choose struct {
		At
		Bound Bound
		Body  Expr
	}
	// SetLit is {a, b, c}.
	SetLit struct {
		At
		Elems []Expr
	}
	// Filter is {x \in S : P}.
	Filter struct {
		At
		Bound Bound
		Pred  Expr
	}
	// MapSet is {e : x \in S}.
	MapSet struct {
		At
		Body   Expr
		Bounds []Bound
	}
	// FnLit is [x \in S |-> e].
	FnLit struct {
		At
		Bounds []Bound
		Body   Expr
	}
	// FnSet is [S -> T].
	FnSet struct {
		At
		Dom, Rng Expr
	}
	// RecLit is [a |-> e, b |-> f].
	RecLit struct {
		At
		Fields []FieldExpr
	}
	// RecSet is [a : S, b : T].
	RecSet struct {
		At
		Fields []FieldExpr
	}
	// Except is [f EXCEPT !path = e, ...].
	Except struct {
		At
		Fn      Expr
		Updates []Update
	}
	// AtSign is @ inside an EXCEPT.
	AtSign struct{ At }
	// Tuple is <<a, b>>.
	Tuple struct {
		At
		Elems []Expr
	}
	// Cross is A \X B \X C.
	Cross struct {
		At
		Sets []Expr
	}
	// If is IF Cond THEN Then ELSE Else.
	If struct {
		At
		Cond, Then, Else Expr
	}
	// Case is CASE p -> e [] q -> f [] OTHER -> g; Other is nil when absent.
	Case struct {
		At
		Arms  []Arm
		Other Expr
	}
	// Let is LET Defs IN Body.
	Let struct {
		At
		Defs []*Def
		Body Expr
	}
	// Lambda is LAMBDA x, y : e, as an argument.
	Lambda struct {
		At
		Params []Param
		Body   Expr
	}
	// Boxed is [A]_v, or <<A>>_v when Angle is set.
	Boxed struct {
		At
		Angle     bool
		Action, V Expr
	}
	// Fair is WF_v(A), or SF_v(A) when Strong is set.
	Fair struct {
		At
		Strong    bool
		V, Action Expr
	}
)

// FieldExpr is one field of a record or of a set of records.
type FieldExpr struct {
	Name string
	Expr Expr
}

// Update is one "!path = Value" of an EXCEPT; a step of the path is an index (Args) or a field (Field).
type Update struct {
	Path  []PathStep
	Value Expr
	Pos   Pos
}

// PathStep is [Args] or .Field.
type PathStep struct {
	Args  []Expr
	Field string
}

// Arm is one guarded arm of a CASE.
type Arm struct{ Guard, Body Expr }
