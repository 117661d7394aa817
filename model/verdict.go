package model

import "strings"

// publicNames are the properties' names where people read them.
var publicNames = map[string]string{
	"NeverEmpty": "never-empty", "Covered": "covered", "Reachable": "reachable", "Tight": "tight",
	"RepairedInTime": "repair-bound", "TypeOK": "type-ok", "Sane": "sane",
	"EventuallyRepaired": "eventually-repaired", "EventuallyTight": "eventually-tight",
}

// PublicName returns a property's name as people read it: NeverEmpty is never-empty. A name that is not
// known is returned as it is.
func PublicName(property string) string {
	if name, known := publicNames[property]; known {
		return name
	}
	if rest, isProbe := strings.CutPrefix(property, "Probe"); isProbe {
		return "probe" + kebab(rest)
	}
	return property
}

func kebab(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// Verdict states which of the judged properties are violated, in the words of a configuration's first
// line: "holds", or "never-empty violated, covered violated".
func Verdict(violated []string) string {
	if len(violated) == 0 {
		return "holds"
	}
	parts := make([]string, len(violated))
	for i, name := range violated {
		parts[i] = PublicName(name) + " violated"
	}
	return strings.Join(parts, ", ")
}
