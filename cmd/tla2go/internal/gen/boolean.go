package gen

import "strings"

// not negates a Go condition, without negating twice.
func not(cond string) string {
	s := cond
	for strings.HasPrefix(s, "(") && closing(s) == len(s)-1 {
		s = s[1 : len(s)-1]
	}
	switch {
	case s == "true":
		return "false"
	case s == "false":
		return "true"
	}
	at, op := topOperator(s)
	switch op {
	case "":
		if rest, ok := strings.CutPrefix(s, "!"); ok {
			return rest
		}
		return "!" + s
	case "&&", "||":
		return "!(" + s + ")"
	}
	flip := map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
	return "(" + s[:at] + flip[op] + s[at+len(op):] + ")"
}

// bare removes parentheses around a whole expression.
func bare(s string) string {
	for strings.HasPrefix(s, "(") && closing(s) == len(s)-1 {
		s = s[1 : len(s)-1]
	}
	return header(s)
}

// header puts code into parentheses where Go could take a composite literal's brace for that of a block.
func header(s string) string {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '{':
			if depth == 0 && i > 0 && s[i-1] != ' ' {
				return "(" + s + ")"
			}
		}
	}
	return s
}

// closing is the index of the parenthesis that closes the first one.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// topOperator finds the weakest Boolean operator or comparison outside of parentheses; "" when there is none.
func topOperator(s string) (at int, op string) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
			}
		case ' ':
			if depth > 0 {
				continue
			}
			for _, o := range []string{"&& ", "|| "} {
				if strings.HasPrefix(s[i+1:], o) {
					return i + 1, o[:2]
				}
			}
			for _, o := range []string{"== ", "!= ", "<= ", ">= ", "< ", "> "} {
				if op == "" && strings.HasPrefix(s[i+1:], o) {
					at, op = i+1, strings.TrimSpace(o)
				}
			}
		}
	}
	return at, op
}
