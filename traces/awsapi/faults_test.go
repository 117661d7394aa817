package awsapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/awsapi"
)

func faults(t *testing.T, text string) *awsapi.Faults {
	t.Helper()
	f, err := awsapi.LoadFaults(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func simulate(t *testing.T, f *awsapi.Faults) (*awsapi.Simulator, *clock) {
	t.Helper()
	c := newClock()
	s, err := awsapi.NewSimulator(load(t, twoGroups), f, c)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// permit is an authorize of one port.
func permit(port int) *awsapi.Call {
	return call(traces.AuthorizeSecurityGroupIngress, permitted(port))
}

func permitted(port int) string {
	return fmt.Sprintf("GroupId=%s&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=%d&IpPermissions.1.ToPort=%[2]d&IpPermissions.1.Groups.1.GroupId=%s", nodes, port, clients)
}

func forbid(port int) *awsapi.Call {
	return call(traces.RevokeSecurityGroupIngress, permitted(port))
}

// did gives the answer's code, "lost" for none, and "" for success.
func did(t *testing.T, s *awsapi.Simulator, c *awsapi.Call) string {
	t.Helper()
	a, err := s.Do(ctx, c)
	switch {
	case err != nil:
		t.Fatal(err)
	case a.Lost:
		return "lost"
	}
	return a.Code
}

// seen lists the ports that a describe shows now.
func seen(t *testing.T, s *awsapi.Simulator) string {
	t.Helper()
	c := call(traces.DescribeSecurityGroups, "GroupId.1="+nodes)
	a, err := s.Do(ctx, c)
	if err != nil || a.Code != "" {
		t.Fatal(err, a.Code)
	}
	return listed(awsapi.Operations(c, a)[0].View)
}

func listed(rules []traces.Permission) string {
	var ports []string
	for _, p := range sorted(slices.Clone(rules)) {
		ports = append(ports, fmt.Sprint(p.FromPort))
	}
	return strings.Join(ports, " ")
}

func TestFaultRules(t *testing.T) {
	for _, test := range []struct {
		name, faults string
		want         string // of eight authorizes, a second apart
		rules        string
	}{
		{"none", `{}`, "- - - - - - - -", "1 2 3 4 5 6 7 8"},
		{"the third", `{"rules":[{"action":"AuthorizeSecurityGroupIngress","nth":[3],"code":"UnauthorizedOperation"}]}`,
			"- - UnauthorizedOperation - - - - -", "1 2 4 5 6 7 8"},
		{"every third", `{"rules":[{"action":"Authorize*","everyNth":3,"code":"InternalError"}]}`, "- - InternalError - - InternalError - -", "1 2 4 5 7 8"},
		{"of another action", `{"rules":[{"action":"Revoke*","code":"InternalError"}]}`, "- - - - - - - -", "1 2 3 4 5 6 7 8"},
		{"of another group", `{"rules":[{"action":"*","group":"sg-0eee","code":"InternalError"}]}`, "- - - - - - - -", "1 2 3 4 5 6 7 8"},
		{"for a while", `{"rules":[{"action":"*","group":"` + nodes + `","from":"2s","until":"4s","code":"Unavailable"}]}`, "- - Unavailable Unavailable - - - -", "1 2 5 6 7 8"},
		{"until a time", `{"rules":[{"action":"*","until":"2026-11-30T07:00:01Z","code":"Unavailable"}]}`, "Unavailable - - - - - - -", "2 3 4 5 6 7 8"},
		{"answers lost", `{"rules":[{"action":"*","nth":[2,4],"lost":true}]}`, "- lost - lost - - - -", "1 2 3 4 5 6 7 8"},
		{"calls dropped", `{"rules":[{"action":"*","nth":[2,4],"dropped":true}]}`, "- lost - lost - - - -", "1 3 5 6 7 8"},
		{"the first rule decides", `{"rules":[{"action":"*","nth":[2],"lost":true},{"action":"*","nth":[2,3],"code":"InternalError"}]}`, "- lost InternalError - - - - -", "1 2 4 5 6 7 8"},
		{"throttled", `{"throttle":{"AuthorizeSecurityGroupIngress":{"rate":0.5,"burst":2}}}`,
			"- - - RequestLimitExceeded - RequestLimitExceeded - RequestLimitExceeded", "1 2 3 5 7"},
		{"throttled by all", `{"throttle":{"*":{"rate":0,"burst":1}}}`, "- RequestLimitExceeded RequestLimitExceeded RequestLimitExceeded RequestLimitExceeded RequestLimitExceeded RequestLimitExceeded RequestLimitExceeded", "1"},
		{"full", `{"rulesPerGroup":2}`, "- - RulesPerSecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded", "1 2"},
		{"all of a share", `{"rules":[{"action":"*","share":1,"code":"InternalError"}]}`, strings.TrimSpace(strings.Repeat("InternalError ", 8)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := simulate(t, faults(t, test.faults))
			var got []string
			for port := range 8 {
				result := did(t, s, permit(port+1))
				if result == "" {
					result = "-"
				}
				got = append(got, result)
				c.advance(time.Second)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if rules := listed(s.Rules(nodes)); rules != test.rules {
				t.Errorf("the rules are %s, not %s", rules, test.rules)
			}
		})
	}
}

func TestLateEffects(t *testing.T) {
	s, c := simulate(t, faults(t, `{"rules":[{"action":"Authorize*","nth":[1],"late":"5s"},{"action":"Authorize*","nth":[2],"late":"2s"},{"action":"Revoke*","late":"3s"}]}`))
	s.KeepChanges()
	for _, asked := range []*awsapi.Call{permit(1), permit(2), forbid(2)} {
		if got := did(t, s, asked); got != "lost" {
			t.Errorf("%s: %q", asked.Action, got)
		}
	}
	c.advance(10 * time.Second)
	var got []string
	for _, change := range s.Changes(nodes) {
		var rules []traces.Permission
		for _, r := range change.Rules {
			rules = append(rules, r.Permission)
		}
		got = append(got, fmt.Sprintf("%v %s: %s", time.Duration(change.At.Sub(traces.At(start))), change.Action, listed(rules)))
	}
	want := []string{"0s : ", "2s AuthorizeSecurityGroupIngress: 2", "3s RevokeSecurityGroupIngress: ", "5s AuthorizeSecurityGroupIngress: 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadLag(t *testing.T) {
	// Offsets in half seconds from a start with the rules 1 and 2: revoke 2 and authorize 3 at 0, revoke 1 at 2.
	for _, test := range []struct{ name, faults, want string }{
		{"none", `{}`, "1 3|1 3|3|3|3|3|3"},
		{"revokes", `{"readLag":"revoke=1.5s"}`, "1 2 3|1 2 3|1 2 3|1 3|1 3|3|3"},
		{"revokes, as a list", `{"readLag":{"revoke":"1.5s"}}`, "1 2 3|1 2 3|1 2 3|1 3|1 3|3|3"},
		{"all", `{"readLag":"1.5s"}`, "1 2|1 2|1 2|1 3|1 3|3|3"},
		{"authorizes", `{"readLag":"authorize=1.5s"}`, "1|1||3|3|3|3"},
		{"revokes, in order", `{"inOrder":true,"readLag":"revoke=1.5s"}`, "1 2|1 2|1 2|1 3|1 3|3|3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := simulate(t, nil)
			did(t, s, permit(1))
			did(t, s, permit(2))
			if err := s.SetFaults(faults(t, test.faults)); err != nil {
				t.Fatal(err)
			}
			did(t, s, forbid(2))
			did(t, s, permit(3))
			var got []string
			for step := range 7 {
				if step == 2 {
					did(t, s, forbid(1))
				}
				got = append(got, seen(t, s))
				c.advance(500 * time.Millisecond)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "|")); diff != "" {
				t.Error(diff)
			}
			if rules := listed(s.Rules(nodes)); rules != "3" {
				t.Errorf("the rules are %s", rules)
			}
		})
	}
}

// A group that has just been made, or deleted, is as old to readers as its rules.
func TestReadLagOfGroups(t *testing.T) {
	s, c := simulate(t, faults(t, `{"readLag":"create=1s,delete=2s,tags=3s"}`))
	create := call(traces.CreateSecurityGroup, "GroupName=new&GroupDescription=x&VpcId=vpc-1")
	a, err := s.Do(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	id := awsapi.Operations(create, a)[0].Group
	describe := call(traces.DescribeSecurityGroups, "GroupId.1="+id)
	tagged := call(traces.DescribeSecurityGroups, "Filter.1.Name=tag:a&Filter.1.Value.1=1")
	tags := func() int {
		a, err := s.Do(ctx, tagged)
		if err != nil {
			t.Fatal(err)
		}
		return len(awsapi.Operations(tagged, a))
	}
	if got := did(t, s, describe); got != "InvalidGroup.NotFound" {
		t.Errorf("at once: %q", got)
	}
	if got := did(t, s, call("CreateTags", "ResourceId.1="+id+"&Tag.1.Key=a&Tag.1.Value=1")); got != "" {
		t.Errorf("tags: %q", got)
	}
	c.advance(time.Second)
	if got := did(t, s, describe); got != "" || tags() != 0 {
		t.Errorf("after 1 s: %q, %d tagged", got, tags())
	}
	c.advance(2 * time.Second)
	if tags() != 1 {
		t.Error("after 3 s the tag is not visible")
	}
	if got := did(t, s, call(traces.DeleteSecurityGroup, "GroupId="+id)); got != "" {
		t.Errorf("delete: %q", got)
	}
	if got := did(t, s, describe); got != "" || tags() != 1 {
		t.Errorf("after the delete: %q, %d tagged", got, tags())
	}
	c.advance(2 * time.Second)
	if got := did(t, s, describe); got != "InvalidGroup.NotFound" || tags() != 0 {
		t.Errorf("2 s after the delete: %q, %d tagged", got, tags())
	}
}

// The latency is spent on the clock, and the effect comes within it.
func TestLatency(t *testing.T) {
	s, c := simulate(t, faults(t, `{"seed":7,"latency":"10ms","rules":[{"action":"Authorize*","latency":"uniform:90ms-190ms"}]}`))
	s.KeepChanges()
	for port := range 50 {
		before := c.Now()
		did(t, s, permit(port+1))
		took := c.Now().Sub(before)
		changes := s.Changes(nodes)
		effect := changes[len(changes)-1].At.Time()
		if took < 100*time.Millisecond || took > 200*time.Millisecond || effect.Before(before) || effect.After(c.Now()) {
			t.Fatalf("the call took %v, its effect came after %v", took, effect.Sub(before))
		}
	}
	before := c.Now()
	seen(t, s)
	if took := c.Now().Sub(before); took != 10*time.Millisecond {
		t.Errorf("a describe took %v", took)
	}
}

// A call that is given up while it waits for its effect changes nothing, and its error says so.
func TestGivenUp(t *testing.T) {
	s, _ := simulate(t, faults(t, `{"latency":"10ms"}`))
	gone, cancel := contextDone()
	defer cancel()
	if _, err := s.Do(gone, permit(1)); !errors.Is(err, gone.Err()) || !strings.Contains(err.Error(), "before it took effect") {
		t.Errorf("the error is %v", err)
	}
	if rules := s.Rules(nodes); len(rules) != 0 {
		t.Errorf("the rules are %v", rules)
	}
}

func TestDistributions(t *testing.T) {
	const n = 2000
	for _, test := range []struct {
		text           string
		low, high      time.Duration
		mean, accuracy float64
	}{
		{"1.5s", 1500 * time.Millisecond, 1500 * time.Millisecond, 1.5, 0},
		{"fixed:0s", 0, 0, 0, 0},
		{"uniform:1s-3s", time.Second, 3 * time.Second, 2, 0.06},
		{"exponential:500ms", 0, 40 * 500 * time.Millisecond, 0.5, 0.06},
	} {
		t.Run(test.text, func(t *testing.T) {
			var d awsapi.Distribution
			if err := d.UnmarshalText([]byte(test.text)); err != nil {
				t.Fatal(err)
			}
			s, c := simulate(t, &awsapi.Faults{Latency: d, Seed: 3})
			sum := 0.0
			for range n {
				before := c.Now()
				did(t, s, call("DescribeVpcs", ""))
				took := c.Now().Sub(before)
				if took < test.low || took > test.high {
					t.Fatalf("%v is outside of %v-%v", took, test.low, test.high)
				}
				sum += took.Seconds()
			}
			if mean := sum / n; math.Abs(mean-test.mean) > test.accuracy+1e-9 {
				t.Errorf("the mean is %v s", mean)
			}
		})
	}
	for _, text := range []string{"", "x", "-1s", "uniform:1s", "uniform:2s-1s", "normal:1s", "exponential:x", "1"} {
		var d awsapi.Distribution
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

// A share befalls about that share of the calls.
func TestShare(t *testing.T) {
	s, _ := simulate(t, faults(t, `{"seed":1,"rules":[{"action":"DescribeVpcs","share":0.25,"code":"InternalError"}]}`))
	failed := 0
	for range 4000 {
		if did(t, s, call("DescribeVpcs", "")) != "" {
			failed++
		}
	}
	if failed < 900 || failed > 1100 {
		t.Errorf("%d of 4000 calls failed", failed)
	}
}

// Decisions depend on the seed, the action and its n-th call, not on what other calls come between.
func TestDecisionsAreOfTheCall(t *testing.T) {
	const text = `{"seed":5,"rules":[{"action":"*","share":0.5,"code":"InternalError"}]}`
	run := func(seed uint64, between func(s *awsapi.Simulator, i int)) string {
		f := faults(t, text)
		f.Seed = seed
		s, _ := simulate(t, f)
		result := ""
		for i := range 64 {
			if did(t, s, permit(i+1)) != "" {
				result += "x"
			} else {
				result += "-"
			}
			between(s, i)
		}
		return result
	}
	alone := run(5, func(*awsapi.Simulator, int) {})
	busy := run(5, func(s *awsapi.Simulator, i int) {
		for range i % 4 {
			did(t, s, forbid(9999))
			seenOrNot, err := s.Do(ctx, call("DescribeVpcs", ""))
			if err != nil {
				t.Fatal(seenOrNot, err)
			}
		}
	})
	if alone != busy {
		t.Errorf("other calls change the decisions:\n%s\n%s", alone, busy)
	}
	if other := run(6, func(*awsapi.Simulator, int) {}); other == alone {
		t.Error("another seed decides the same")
	}
}

// Equal calls at equal times give equal bytes.
func TestDeterminism(t *testing.T) {
	run := func() string {
		s, c := simulate(t, faults(t, `{"seed":9,"readLag":"exponential:1s","latency":"uniform:1ms-20ms","rules":[{"action":"*","share":0.2,"code":"InternalError"},{"action":"*","share":0.1,"lost":true}]}`))
		var all strings.Builder
		for i := range 200 {
			for _, asked := range []*awsapi.Call{permit(1 + i%5), forbid(1 + i%3), call("DescribeSecurityGroups", ""), call("CreateSecurityGroup", fmt.Sprintf("GroupName=g%d&GroupDescription=x&VpcId=vpc-1", i))} {
				asked.ID = ""
				a, err := s.Do(ctx, asked)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&all, "%v %d %s %v %s\n", c.Now(), a.Status, a.RequestID, a.Lost, a.Body)
			}
		}
		return all.String()
	}
	if a, b := run(), run(); a != b {
		t.Error("two equal runs differ")
	}
}

// Concurrent calls take effect one after another: of equal authorizes only one succeeds.
func TestConcurrent(t *testing.T) {
	s, _ := simulate(t, nil)
	s.KeepChanges()
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for i := range 64 {
		wg.Go(func() {
			a, err := s.Do(ctx, permit(1+i%8))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				codes[err.Error()]++
			} else {
				codes[a.Code]++
			}
			s.Changes(nodes)
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"": 8, "InvalidPermission.Duplicate": 56}, codes); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsFile(t *testing.T) {
	f := faults(t, `
seed: 7
readLag: {revoke: 1.5s, "*": "uniform:0s-2s"}
latency: exponential:5ms
throttle: {"*": {rate: 20, burst: 100}}
rulesPerGroup: 60
rules:
- {action: AuthorizeSecurityGroupIngress, share: 0.1, code: RequestLimitExceeded, message: slow down}
- {action: "Describe*", from: 10s, until: "2026-11-30T07:00:20Z", late: 2s}
`)
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"seed":7,"readLag":{"*":"uniform:0s-2s","revoke":"1.5s"},"latency":"exponential:5ms","throttle":{"*":{"rate":20,"burst":100}},` +
		`"rulesPerGroup":60,"rules":[{"action":"AuthorizeSecurityGroupIngress","share":0.1,"code":"RequestLimitExceeded","message":"slow down"},` +
		`{"action":"Describe*","from":"10s","until":"2026-11-30T07:00:20Z","late":"2s"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	var again awsapi.Faults
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(&again); string(text) != want {
		t.Errorf("read again it is %s", text)
	}
	for text, want := range map[string]string{
		`{"sede":1}`:                        "sede: there is no such key",
		`{"seed":"1"}`:                      "seed is a text and has to be a number",
		`{"seed":-1}`:                       "seed: -1 is no number that it can have",
		`{"seed":1,"seed":2}`:               "seed is given twice",
		`{"readLag":"soon"}`:                `readLag: "soon": "soon" is no duration`,
		`{"readLag":{"revokes":"1s"}}`:      "readLag.revokes: it is none of authorize",
		`{"readLag":"revoke=1s,revoke=2s"}`: "readLag",
		`{"readLag":{"":"1s"}}`:             "readLag.: it is none of",
		`{"latency":5}`:                     "latency is a number and has to be a text",
		`{"rules":{}}`:                      "rules is an object and has to be a list",
		`{"rules":[{"code":"x"}]}`:          "rules[0] has no action",
		`{"rules":[{"action":"Authorise*","code":"x"}]}`:               `rules[0].action: no action is called "Authorise*"`,
		`{"rules":[{"action":"*"}]}`:                                   "rules[0] has none of code",
		`{"rules":[{"action":"*","code":"x","lost":true}]}`:            "rules[0]: only one of code",
		`{"rules":[{"action":"*","code":"x","share":2}]}`:              "rules[0].share: 2 is outside",
		`{"rules":[{"action":"*","code":"x","nth":[0]}]}`:              "rules[0].nth: calls are counted from 1",
		`{"rules":[{"action":"*","code":"x","nth":[1],"everyNth":2}]}`: "rules[0]: only one of share",
		`{"rules":[{"action":"*","code":"x","from":"noon"}]}`:          `rules[0].from: "noon" is neither`,
		`{"throttle":{"Fly":{"rate":1}}}`:                              "throttle.Fly: there is no such action",
		`{"throttle":{"*":{"rate":-1}}}`:                               "throttle.*: rate or burst is negative",
		`{"rulesPerGroup":-1}`:                                         "rulesPerGroup is negative",
		`[]`:                                                           "the document is a list",
		``:                                                             "it is empty",
		`{"seed":1} {}`:                                                "something follows",
		`{"seed":`:                                                     "at byte 8: unexpected EOF",
		"a: b: c":                                                      "neither JSON nor YAML",
		"seed: 1\nseed: 2":                                             "neither JSON nor YAML",
	} {
		_, err := awsapi.LoadFaults(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}

// A form with values that AWS does not know is refused.
func TestUnknownParameter(t *testing.T) {
	s, _ := simulate(t, nil)
	if got := did(t, s, call(traces.DescribeSecurityGroups, url.Values{"GroupIds.1": {nodes}}.Encode())); got != "UnknownParameter" {
		t.Error(got)
	}
}
