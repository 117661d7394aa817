package traces_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
)

const header = `{"history":"v1"}` + "\n"

func read(t *testing.T, text string) *traces.History {
	t.Helper()
	h := &traces.History{Inputs: []traces.Input{{Path: "h.ndjson"}}}
	if err := traces.ReadHistory(strings.NewReader(text), h, 0); err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t *testing.T, h *traces.History) string {
	t.Helper()
	var b strings.Builder
	if err := traces.WriteHistory(&b, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// randomHistory has every field that a history can hold.
func randomHistory(rng *rand.Rand) *traces.History {
	at := func() traces.Instant {
		return traces.At(time.Date(2026, 8, 28, 9, rng.IntN(60), rng.IntN(60), rng.IntN(1e9), time.UTC))
	}
	some := func(list ...string) string { return list[rng.IntN(len(list))] }
	permissions := func() []traces.Permission {
		list := make([]traces.Permission, 1+rng.IntN(3))
		for i := range list {
			list[i] = traces.Permission{Rule: randomRule(rng), Description: some("", "elbv2.k8s.aws/targetGroupBinding=shared", "<script>\x1b[31m\"\\")}
		}
		return list
	}
	identified := func() []traces.IdentifiedPermission {
		var list []traces.IdentifiedPermission
		for i, p := range permissions() {
			list = append(list, traces.IdentifiedPermission{ID: fmt.Sprint("sgr-", i), Permission: p})
		}
		return list
	}
	h := &traces.History{Header: map[string]string{"clock": "one host", "odd \"name\"": "ü"}}
	for i := range rng.IntN(12) {
		op := traces.Operation{ID: some(fmt.Sprint("seq ", i+1), "e-"+fmt.Sprint(i)), EventID: some("", "e"), RequestID: some("", "r"), Process: some("", "lbc-1", "a/b"), After: -1,
			Call: at(), Outcome: traces.Succeeded, Unclear: rng.IntN(8) == 0}
		op.Return = op.Call.Add(time.Duration(rng.IntN(1e9)))
		if rng.IntN(9) == 0 {
			op.Call = traces.Beginning
		}
		switch rng.IntN(7) {
		case 0:
			op.Op, op.Group, op.Permissions, op.Granted = traces.AuthorizeSecurityGroupIngress, "sg-1", permissions(), identified()
		case 1:
			op.Op, op.Group, op.Permissions, op.Unknown, op.Revoked = traces.RevokeSecurityGroupIngress, "sg-1", permissions(), permissions(), identified()
		case 2:
			op.Op, op.Group, op.RuleIDs = traces.RevokeSecurityGroupIngress, "sg-1", []string{"sgr-1", "sgr-2"}
		case 3:
			op.Op, op.Group, op.Updates = traces.ModifySecurityGroupRules, "sg-1", []traces.RuleUpdate{{ID: "sgr-1", Permission: permissions()[0]}}
		case 4:
			op.Op, op.Group, op.View = traces.DescribeSecurityGroups, "sg-1", append([]traces.Permission{}, permissions()[1:]...)
		case 5:
			op.Op, op.TargetGroup, op.Targets = traces.RegisterTargets, "arn:x", []traces.Target{{ID: "10.0.0.1", Port: 80}, {ID: "i-1"}}
		case 6:
			op.Op, op.Group, op.Updates = traces.UpdateSecurityGroupRuleDescriptionsIngress, "sg-1", []traces.RuleUpdate{{ID: "sgr-1", Permission: traces.Permission{Description: "new"}}}
		}
		switch rng.IntN(4) {
		case 0:
			op.Outcome, op.Error = traces.Failed, some("InvalidPermission.NotFound", "unknown")
		case 1:
			op.Outcome = traces.Pending
			if rng.IntN(2) == 0 {
				op.Return = traces.Forever
			}
		}
		if i > 0 && rng.IntN(3) == 0 {
			op.After = rng.IntN(i)
		}
		if rng.IntN(3) == 0 {
			op.Caller = &traces.Caller{Role: "lbc", Session: "s", Account: "1", AccessKeyID: "k", SessionStart: "then", UserAgent: "elbv2.k8s.aws/v3.4.0", SourceAddress: "10.0.0.1", InvokedBy: "cloudformation"}
		}
		if rng.IntN(3) == 0 {
			op.Extra = []traces.Field{{Name: "result.more", Value: `[1,{"a":null}]`}, {Name: "note", Value: `"x"`}}
		}
		h.Operations = append(h.Operations, op)
	}
	for i := range rng.IntN(4) {
		ob := traces.Observation{ID: fmt.Sprint("o-", i), Kind: traces.Skipped, Process: "lbc-1", TGB: "ns/web", Group: some("", "sg-1"), Earliest: at(), Error: some("", "x"), Text: some("", "why")}
		ob.Latest = ob.Earliest.Add(time.Duration(rng.IntN(2)) * time.Second)
		if rng.IntN(2) == 0 {
			ob.Kind, ob.Permissions = traces.Wanted, permissions()
		}
		h.Observations = append(h.Observations, ob)
	}
	return h
}

var sameRecords = cmp.Options{
	cmpopts.IgnoreFields(traces.Operation{}, "Sources", "Stamp"), cmpopts.IgnoreFields(traces.Observation{}, "Sources"),
	cmpopts.IgnoreFields(traces.History{}, "Inputs"), cmpopts.EquateEmpty(),
}

// TestHistoryRoundTrip: what is written is read again, and writing that gives the same bytes.
func TestHistoryRoundTrip(t *testing.T) {
	for seed := range uint64(400) {
		h := randomHistory(rand.New(rand.NewPCG(seed, 5)))
		text := write(t, h)
		back := read(t, text)
		if diff := cmp.Diff(h, back, sameRecords); diff != "" || back.Inputs[0].Rejected > 0 || len(back.Inputs[0].Notes) > 0 {
			t.Fatalf("seed %d: -written +read\n%s\n%s%v", seed, diff, text, back.Inputs[0])
		}
		for i := range h.Operations {
			if (h.Operations[i].View == nil) != (back.Operations[i].View == nil) {
				t.Fatalf("seed %d: a view of nothing is not no view", seed)
			}
		}
		if again := write(t, back); again != text {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(text, again))
		}
	}
}

func TestReadHistoryRejects(t *testing.T) {
	const group = `"op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"2026-08-28T10:00:00Z","return":"2026-08-28T10:00:01Z"`
	for name, c := range map[string]struct{ record, want string }{
		"no JSON":               {`{"op":`, "line 2: the line is no JSON object"},
		"an array":              {`[1]`, "line 2: is no JSON object"},
		"neither":               {`{"seq":1}`, `line 2: the record has neither "op" nor "observation"`},
		"no time":               {`{"op":"RevokeSecurityGroupIngress"}`, `line 2: the operation has neither "call" nor "return"`},
		"a number for a time":   {`{"op":"x","call":5}`, `line 2: field "call": is no time; write RFC 3339 in quotes`},
		"another time":          {`{"op":"x","call":"noon"}`, `line 2: field "call": is no RFC 3339 time`},
		"a number for a name":   {`{"op":7,"call":"2026-08-28T10:00:00Z"}`, `line 2: field "op": is no string`},
		"a huge port":           {`{` + group + `,"ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":99999,"IpRanges":[{"CidrIp":"0.0.0.0/0"}]}]}`, `line 2: field "ipPermissions": port 99999 is outside of -1..65535`},
		"no protocol":           {`{` + group + `,"ipPermissions":[{"FromPort":80}]}`, `line 2: field "ipPermissions": a permission has no IpProtocol`},
		"no source":             {`{` + group + `,"ipPermissions":[{"IpProtocol":"tcp","FromPort":80,"ToPort":80}]}`, `line 2: field "ipPermissions": a permission (tcp) names no source`},
		"no list":               {`{` + group + `,"ipPermissions":7}`, `line 2: field "ipPermissions": is no list of IpPermission: json: cannot unmarshal number into Go value of type []traces.ipPermission`},
		"a target's port":       {`{"op":"RegisterTargets","call":"2026-08-28T10:00:00Z","targets":[{"id":"i-1","port":70000}]}`, `line 2: field "targets": port 70000 is outside of 0..65535`},
		"no targets":            {`{"op":"RegisterTargets","call":"2026-08-28T10:00:00Z","targets":7}`, `line 2: field "targets": is no list of targets: json: cannot unmarshal number into Go value of type []traces.target`},
		"a rule of nothing":     {`{` + group + `,"securityGroupRules":[{}]}`, `line 2: field "securityGroupRules": a rule has neither SecurityGroupRuleId nor IpPermission`},
		"no result":             {`{` + group + `,"result":7}`, `line 2: field "result": is no JSON object`},
		"a backward sight":      {`{"observation":"skipped","earliest":"2026-08-28T10:00:01Z","latest":"2026-08-28T10:00:00Z"}`, "line 2: the observation's latest instant is before its earliest"},
		"a record of no caller": {`{` + group + `,"caller":7}`, `line 2: field "caller": json: cannot unmarshal number into Go value of type traces.Caller`},
	} {
		t.Run(name, func(t *testing.T) {
			h := read(t, header+c.record+"\n"+`{`+group+`}`+"\n")
			in := h.Inputs[0]
			if diff := cmp.Diff([]string{c.want}, in.Rejections); diff != "" || in.Rejected != 1 || in.Records != 2 || in.Used != 1 || len(h.Operations) != 1 {
				t.Errorf("-want +got\n%s%+v", diff, in)
			}
		})
	}
}

func TestReadHistoryNotes(t *testing.T) {
	const call = `"op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"2026-08-28T10:00:00Z"`
	t.Run("a torn last line", func(t *testing.T) {
		h := read(t, header+`{`+call+"}\n"+`{"op":"Revo`)
		want := []traces.Note{{Kind: "truncated-capture", Text: "the history's last line is torn; the rest was used"}}
		if diff := cmp.Diff(want, h.Inputs[0].Notes); diff != "" || len(h.Operations) != 1 || h.Inputs[0].Rejected != 1 {
			t.Error(diff, h.Inputs[0])
		}
	})
	t.Run("a last line without its end is whole", func(t *testing.T) {
		if h := read(t, header+`{`+call+"}"); len(h.Operations) != 1 || len(h.Inputs[0].Notes) != 0 {
			t.Error(h.Inputs[0])
		}
	})
	t.Run("a clock that was set back", func(t *testing.T) {
		h := read(t, header+`{`+call+`,"return":"2026-08-28T09:59:59Z"}`+"\n")
		op := h.Operations[0]
		if op.Call.String() != "2026-08-28T09:59:59Z" || op.Return.String() != "2026-08-28T10:00:00Z" || h.Inputs[0].Notes[0].Kind != "clock-set-back" {
			t.Errorf("%v to %v, %v", op.Call, op.Return, h.Inputs[0].Notes)
		}
	})
	t.Run("after", func(t *testing.T) {
		h := read(t, header+`{"seq":1,"after":2,`+call+`}`+"\n"+`{"seq":2,"after":1,`+call+`}`+"\n"+`{"seq":3,"after":9,`+call+`}`+"\n"+`{"seq":4,"after":2,`+call+`}`+"\n")
		var after []int
		for _, op := range h.Operations {
			after = append(after, op.After)
		}
		if diff := cmp.Diff([]int{-1, 0, -1, 1}, after); diff != "" || len(h.Inputs[0].Notes) != 2 {
			t.Error(diff, h.Inputs[0].Notes)
		}
	})
	t.Run("pending", func(t *testing.T) {
		h := read(t, header+`{`+call+`}`+"\n"+`{`+call+`,"return":"2026-08-28T10:00:01Z","pending":true}`+"\n"+`{`+call+`,"error":"x"}`+"\n"+`{`+call+`,"return":"2026-08-28T10:00:01Z","error":""}`+"\n")
		var got []traces.Outcome
		for _, op := range h.Operations {
			got = append(got, op.Outcome)
		}
		if diff := cmp.Diff([]traces.Outcome{traces.Pending, traces.Pending, traces.Failed, traces.Succeeded}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a long line", func(t *testing.T) {
		h := read(t, header+`{"x":"`+strings.Repeat("y", traces.MaxLine)+"\"}\n"+`{`+call+"}\n")
		if diff := cmp.Diff([]string{"line 2: the line is longer than 16 MiB"}, h.Inputs[0].Rejections); diff != "" || len(h.Operations) != 1 {
			t.Error(diff)
		}
	})
	t.Run("names with escapes, and an end of CR LF", func(t *testing.T) {
		h := read(t, "{\"history\":\"v1\"}\r\n"+strings.Replace(`{`+call+"}\r\n", `"op"`, `"\u006fp"`, 1))
		if len(h.Operations) != 1 || h.Operations[0].Op != traces.AuthorizeSecurityGroupIngress {
			t.Error(h.Inputs[0])
		}
	})
}

func TestReadHistoryFails(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "blank lines": "\n\n", "CloudTrail": `{"Records":[]}` + "\n", "text": "hello\n", "another version": `{"history":"v2"}` + "\n",
		"a long first line": strings.Repeat("x", traces.MaxLine+1),
	} {
		h := &traces.History{Inputs: []traces.Input{{}}}
		err := traces.ReadHistory(strings.NewReader(text), h, 0)
		if name == "another version" {
			if err == nil || !strings.Contains(err.Error(), `"v2"`) {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.Is(err, traces.ErrNoHistory) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("the disk is gone")
	h := &traces.History{Inputs: []traces.Input{{}}}
	if err := traces.ReadHistory(iotest.ErrReader(broken), h, 0); !errors.Is(err, broken) {
		t.Errorf("a failing reader: %v", err)
	}
	long := &traces.History{Operations: slices.Repeat([]traces.Operation{{Op: traces.DeleteSecurityGroup, Group: "sg-1", After: -1, Return: 1}}, 3000)}
	if err := traces.WriteHistory(failing{broken}, long); !errors.Is(err, broken) {
		t.Errorf("a failing writer: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzReadHistory: no input makes the reader panic, the counters add up, and what was read and written is read the same.
func FuzzReadHistory(f *testing.F) {
	for seed := range uint64(20) {
		var b bytes.Buffer
		if err := traces.WriteHistory(&b, randomHistory(rand.New(rand.NewPCG(seed, 6)))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(header + `{"seq":1,"op":"x","call":"beginning","return":"forever","after":1}` + "\n{\"observation\":\"noted\"}\n\x00\xff"))
	f.Add([]byte("{\"history\":\"v1\",\"\xff\":{\"a\":\"\xc8\"}}\n{\"op\":\"x\",\"call\":\"beginning\",\"\xff\":1}\n{\"op\":\"\",\"return\":\"beginning\"}\n"))
	f.Add([]byte(part(1, record(1, 1, 0, ""), record(2, 2, 0, ""), record(1, 1, 3, "")) + part(2, record(2, 2, 4, `"after":1`))))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &traces.History{Inputs: []traces.Input{{}}}
		if traces.ReadHistory(bytes.NewReader(text), h, 0) != nil {
			return
		}
		if in := h.Inputs[0]; in.Records != in.Used+in.Rejected || in.Used != len(h.Operations)+len(h.Observations) {
			t.Fatalf("%+v with %d operations and %d observations", in, len(h.Operations), len(h.Observations))
		}
		first := write(t, h)
		again := read(t, first)
		if again.Inputs[0].Rejected > 0 {
			t.Fatalf("%v is rejected of\n%s", again.Inputs[0].Rejections, first)
		}
		if second := write(t, again); first != second {
			t.Fatal(cmp.Diff(first, second))
		}
	})
}
