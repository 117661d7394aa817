package awsapi

import (
	"regexp"
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, value string
		want           bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"*", "", true}, {"*", "abc", true}, {"?", "", false},
		{"?", "é", true}, {"a*c", "abbc", true}, {"a*c", "abb", false}, {"*ab*ab", "abab", true}, {"*ab*ab", "aab", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\?`, "a?", true}, {`\\`, `\`, true}, {`a\`, `a\`, true}, {"**", "x", true}, {"a**", "a", true},
	} {
		if got := matches(test.pattern, test.value); got != test.want {
			t.Errorf("%q against %q: %v", test.pattern, test.value, got)
		}
	}
}

// FuzzMatches compares with a regular expression.
func FuzzMatches(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Add(`\*\?\\`, `*?\`)
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(value, "") != value || strings.HasSuffix(pattern, `\`) || len(pattern) > 200 {
			return
		}
		var re strings.Builder
		re.WriteString(`(?s)\A`)
		escaped := false
		for _, c := range pattern {
			switch {
			case escaped:
				re.WriteString(regexp.QuoteMeta(string(c)))
				escaped = false
			case c == '\\':
				escaped = true
			case c == '*':
				re.WriteString(".*")
			case c == '?':
				re.WriteString(".")
			default:
				re.WriteString(regexp.QuoteMeta(string(c)))
			}
		}
		re.WriteString(`\z`)
		want := regexp.MustCompile(re.String()).MatchString(value)
		if got := matches(pattern, value); got != want {
			t.Errorf("%q against %q: %v, a regular expression says %v", pattern, value, got, want)
		}
	})
}
