package traces

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestAppendAsMarshal: what is written without reflection is what json.Marshal would write.
func TestAppendAsMarshal(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab /-\"\\<>&\n\x00\x7fé…\u2028\u2029😀\ufffd")
	text := func() string {
		s := ""
		for range chance.IntN(6) {
			s += string(alphabet[chance.IntN(len(alphabet))])
		}
		if chance.IntN(8) == 0 {
			s += "\xff" // no UTF-8
		}
		return s
	}
	equal := func(what string, v any, got []byte) {
		t.Helper()
		if want, err := json.Marshal(v); err != nil || string(want) != string(got) {
			t.Fatalf("%s: %s, want %s (%v)", what, got, want, err)
		}
	}
	for range 5000 {
		s := text()
		equal("a string", s, appendJSONString(nil, s))
		c := Caller{text(), text(), text(), text(), text(), text(), text(), text()}
		equal("a caller", c, appendCaller(nil, &c))

		from, to := int64(chance.IntN(3)-1), int64(chance.IntN(3)-1)
		p := Permission{Rule{[]string{"tcp", "-1", "icmp"}[chance.IntN(3)], int32(from), int32(to), text()}, text()}
		want := ipPermission{IpProtocol: &p.Protocol}
		if p.Protocol != "-1" && (from != -1 || to != -1) {
			want.FromPort, want.ToPort = &from, &to
		}
		switch chance.IntN(4) {
		case 0:
			p.Source = "pl-" + p.Source
			want.PrefixListIds = []prefixListRef{{p.Source, p.Description}}
		case 1:
			p.Source += "::/1"
			want.Ipv6Ranges = []ipv6Range{{p.Source, p.Description}}
		case 2:
			p.Source = "10.0.0.0/8"
			want.IpRanges = []ipRange{{p.Source, p.Description}}
		default:
			p.Source = "sg-1"
			want.UserIdGroupPairs = []userIDGroup{{GroupId: p.Source, Description: p.Description}}
		}
		equal("a permission", want, appendPermission(nil, &p))
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		rule := IdentifiedPermission{text(), p}
		equal("a rule with its id", []identified{{SecurityGroupRuleId: rule.ID, IpPermission: raw}}, appendIdentified(nil, []IdentifiedPermission{rule}))
	}
}
