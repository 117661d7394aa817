package report

import (
	"net/netip"
	"regexp"
	"strings"
)

// pattern is the form of a name: what matches at its beginning, and what to put in its place. A text without the
// string has cannot match; replace returns false where the match is no such name.
type pattern struct {
	has     string
	form    *regexp.Regexp
	replace func(d *Redactor, s string) (string, bool)
}

func form(expr string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + expr + `)`) }

// one replaces the whole match by a pseudonym of a class.
func one(class string) func(*Redactor, string) (string, bool) {
	return func(d *Redactor, s string) (string, bool) { return d.give(class, s), true }
}

// patterns are tried in this order.
var patterns []pattern

func init() { // and not a literal: replaceARN looks for patterns in turn
	patterns = []pattern{
		{"arn:aws", form(`arn:aws[a-z-]*:[a-z0-9-]*:[a-z0-9-]*:[0-9A-Za-z-]*:[^\s"'<>,;(){}\[\]|\\]+`), replaceARN},
		{"-", form(`[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`), one("event")},
		{"A", form(`(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ANVA|APKA|ABIA|ACCA|AIPA|ASCA)[A-Z0-9]{8,}`), one("key")},
		{"@", form(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`), one("session")},
		{"sg", form(`(?:sg|sgr)-[0-9A-Za-z]+`), replaceID},
		{"-", form(`(?:vpc|eni|i|subnet|pl|vpce|igw|nat|acl|rtb|ami|vol|pcx|tgw|eipalloc|lt|fl)-[0-9a-f]{8,17}`), replaceID},
		{"ip-", form(`ip-[0-9]{1,3}(?:-[0-9]{1,3}){3}(?:\.[a-z0-9-]+)*`), one("host")},
		{"amazonaws.com", form(`(?:[A-Za-z0-9_-]+\.){2,}amazonaws\.com(?:\.cn)?`), one("host")},
		{".", form(`(?:[A-Za-z0-9_-]+\.)+(?:internal|local|svc)`), one("host")},
		{".", form(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?`), replaceAddress},
		{":", form(`[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:/[0-9]{1,3})?`), replaceAddress},
		{"", form(`[0-9]{12}`), one("acct")},
		{"/", form(`(?:targetgroup|loadbalancer)/[^\s"'<>,;(){}\[\]|\\]+`), replaceBalancer},
	}
}

// text rewrites the names inside of a text.
func (d *Redactor) text(s string) string {
	if out, ok := d.texts[s]; ok {
		return out
	}
	out := d.rewriteText(s)
	if d.texts != nil && len(d.texts) < 1<<16 {
		d.texts[s] = out
	}
	return out
}

func (d *Redactor) rewriteText(s string) string {
	var live []pattern
	for _, p := range patterns {
		if strings.Contains(s, p.has) {
			live = append(live, p)
		}
	}
	var b strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		if i > 0 && isWord(s[i-1]) {
			i++
			continue
		}
		n, replacement := d.match(s, i, live)
		if n == 0 {
			i++
			continue
		}
		b.WriteString(s[kept:i])
		b.WriteString(replacement)
		i += n
		kept = i
	}
	if kept == 0 {
		return s
	}
	return b.String() + s[kept:]
}

// match finds the name that begins at s[i]: its length, or 0, and its replacement.
func (d *Redactor) match(s string, i int, live []pattern) (int, string) {
	rest := s[i:]
	if len(rest) >= 2 {
		for _, n := range d.lengths[rest[:2]] {
			if n > len(rest) {
				continue
			}
			if known, ok := d.names[rest[:n]]; ok && inTexts(rest[:n]) && d.ends(s, i, i+n, n >= 5) {
				return n, d.give(known.class, known.original)
			}
		}
	}
	for _, p := range live {
		found := p.form.FindString(rest)
		m := strings.TrimRight(found, ".:")
		if strings.HasSuffix(found, "::") {
			m += "::"
		}
		if m == "" || !d.ends(s, i, i+len(m), true) {
			continue
		}
		if replacement, ok := p.replace(d, m); ok {
			return len(m), replacement
		}
	}
	return 0, ""
}

// ends reports whether s[i:j] is bounded: a longer name goes on with a letter, a digit, or, unless hyphens may bound it,
// a hyphen.
func (d *Redactor) ends(s string, i, j int, hyphens bool) bool {
	if j < len(s) && (isWord(s[j]) || s[j] == '-' && !hyphens) {
		return false
	}
	return hyphens || i == 0 || s[i-1] != '-'
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// wholePattern reports whether all of s has the form of a name.
func (d *Redactor) wholePattern(s string) bool {
	before := d.onlySeen
	d.onlySeen = func(string) {}
	defer func() { d.onlySeen = before }()
	for _, p := range patterns {
		if p.form.FindString(s) == s {
			_, ok := p.replace(d, s)
			return ok
		}
	}
	return false
}

// replaceID keeps the kind of an EC2 id: "sg-014f" becomes "sg-1".
func replaceID(d *Redactor, s string) (string, bool) {
	prefix, _, _ := strings.Cut(s, "-")
	return d.give(prefix, s), true
}

// replaceAddress keeps the prefix length of a network, and the two addresses that mean everybody.
func replaceAddress(d *Redactor, s string) (string, bool) {
	address, bits, isPrefix := strings.Cut(s, "/")
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "", false
	}
	if a.IsUnspecified() {
		return s, true
	}
	p := d.give("ip", address)
	if isPrefix {
		p += "/" + bits
	}
	return p, true
}

// replaceARN rewrites an ARN's account and resource (IAM: reference_identifiers).
func replaceARN(d *Redactor, s string) (string, bool) {
	parts := strings.SplitN(s, ":", 6)
	if len(parts) < 6 {
		return "", false
	}
	if parts[4] != "" {
		parts[4] = d.give("acct", parts[4])
	}
	parts[5] = d.resource(parts[5])
	return strings.Join(parts, ":"), true
}

func (d *Redactor) resource(s string) string {
	kind, rest, ok := strings.Cut(s, "/")
	if !ok {
		return d.text(s)
	}
	switch kind {
	case "assumed-role":
		role, session, ok := strings.Cut(rest, "/")
		role = d.named("role", role)
		if ok {
			role += "/" + d.named("session", session)
		}
		return kind + "/" + role
	case "role", "user", "instance-profile":
		return kind + "/" + d.named("role", rest[strings.LastIndexByte(rest, '/')+1:])
	case "targetgroup", "loadbalancer":
		s, _ := replaceBalancer(d, s)
		return s
	}
	if t := d.text(rest); t != rest {
		return kind + "/" + t
	}
	return kind + "/" + d.give("resource", rest)
}

// named gives the pseudonym of a name that is known by its place.
func (d *Redactor) named(class, s string) string {
	if n, ok := d.names[s]; ok {
		return d.give(n.class, n.original)
	}
	if t := d.text(s); t != s || s == "" {
		return t
	}
	return d.give(class, s)
}

// replaceBalancer rewrites the resource of a target group or load balancer: "targetgroup/name/id" becomes
// "targetgroup/tg-1".
func replaceBalancer(d *Redactor, s string) (string, bool) {
	kind, rest, _ := strings.Cut(s, "/")
	class := "tg"
	if kind == "loadbalancer" {
		class = "lb"
	}
	return kind + "/" + d.give(class, rest), true
}
