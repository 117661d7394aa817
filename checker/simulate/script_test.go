package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const smallScript = `{
  "seed": 3, "duration": "2m",
  "bindings": [{"name": "test/web", "port": 3000, "pods": 1}, {"name": "test/dns", "port": 53, "protocol": "udp", "source": "sg-0123", "pods": 0}],
  "events": [{"at": "30s", "kind": "pod-comes", "binding": "test/dns", "pods": 2}, {"at": "1m", "kind": "crash"}]
}`

// TestReadScript reads what Write writes, and what people write.
func TestReadScript(t *testing.T) {
	want := &Script{Seed: 3, Duration: Duration(2 * time.Minute),
		Bindings: []ScriptBinding{{Name: "test/web", Port: 3000, Pods: 1}, {Name: "test/dns", Port: 53, Protocol: "udp", Source: "sg-0123"}},
		Events:   []Event{{At: Duration(30 * time.Second), Kind: PodComes, Binding: "test/dns", Pods: 2}, {At: Duration(time.Minute), Kind: Crash}}}
	text := smallScript
	for range 2 {
		got, err := ReadScript(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		var b bytes.Buffer
		if err := got.Write(&b); err != nil {
			t.Fatal(err)
		}
		text = b.String()
	}
}

// TestScriptErrors has scripts that are wrong in one place, and what of the place the error has to name.
func TestScriptErrors(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"seed": 3`, `"sead": 3`, "sead"},
		{`"2m"`, `"2 minutes"`, `"2 minutes" is no duration`},
		{`"pods": 1`, `"pods": "one"`, "line 3"},
		{`"2m"`, `"-2m"`, "duration"},
		{`"2m"`, `"9999h"`, "duration"},
		{`"port": 3000`, `"port": 0`, "bindings[0]: port 0"},
		{`"port": 3000`, `"port": 70000`, "bindings[0]: port 70000"},
		{`"pods": 1`, `"pods": -1`, "bindings[0]: -1 pods"},
		{`test/web`, `web`, `bindings[0]: the name "web"`},
		{`test/web`, `/web`, `bindings[0]: the name "/web"`},
		{`test/web`, `a b/web`, `bindings[0]: the name "a b/web"`},
		{`test/web`, `test/dns`, "bindings[1]: another one"},
		{`"udp"`, `"icmp"`, "bindings[1]: protocol"},
		{`sg-0123`, `10.0.0.0/8`, "bindings[1]: source"},
		{`pod-comes`, `pod-dances`, "events[0]: no event is called \"pod-dances\"; there are crash, "},
		{`"binding": "test/dns"`, `"binding": "test/mail"`, "events[0]: there is no binding"},
		{`"pods": 2`, `"pods": 1000000`, "events[0]: 1000000 pods"},
		{`"pods": 2`, `"pods": 10000}, {"at": "1m", "kind": "pod-comes", "binding": "test/dns"`, "events[1]: test/dns has more than"},
		{`"kind": "crash"`, `"kind": "crash", "binding": "test/web"`, "events[1]: crash concerns no binding"},
		{`"at": "1m"`, `"at": "3m"`, "events[1]: 3m0s"},
		{`{"name": "test/web", "port": 3000, "pods": 1}, {"name": "test/dns", "port": 53, "protocol": "udp", "source": "sg-0123", "pods": 0}`, ``, "0 bindings"},
		{`"crash"}]`, `"crash"}]]`, "line 4"},
		{"]\n}", "]\n} {}", "something follows"},
	} {
		text := strings.Replace(smallScript, c.from, c.to, 1)
		if text == smallScript {
			t.Fatalf("%q is not in the script", c.from)
		}
		_, err := ReadScript(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// FuzzReadScript: whatever is accepted is valid, and comes back from what Write writes.
func FuzzReadScript(f *testing.F) {
	f.Add([]byte(smallScript))
	f.Add([]byte(`{"duration":"1s","bindings":[{"name":"a/b","port":1}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadScript(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := ReadScript(&b)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if diff := cmp.Diff(s, again, cmp.Comparer(func(a, b []Event) bool { return len(a) == 0 && len(b) == 0 || cmp.Equal([]any{a}, []any{b}) })); diff != "" && len(s.Events) > 0 {
			t.Fatalf("(-read +read again)\n%s", diff)
		}
	})
}

// TestNewScript: every churn makes a valid script, the same for the same seed, with a quiet time at both ends.
func TestNewScript(t *testing.T) {
	for _, churn := range Churns() {
		for _, bindings := range []int{1, 2, 8} {
			for seed := uint64(1); seed <= 20; seed++ {
				p := Plan{Churn: Churn(churn), Seed: seed, Duration: 20 * time.Minute, Bindings: bindings, Crashes: 1, ExternalRevokes: 2}
				s := script(t, p)
				if diff := cmp.Diff(s, script(t, p)); diff != "" {
					t.Fatalf("%s, seed %d: twice the same plan:\n%s", churn, seed, diff)
				}
				count := map[EventKind]int{}
				pods := map[string]int{}
				for _, b := range s.Bindings {
					pods[b.Name] = b.Pods
				}
				for i, e := range s.Events {
					count[e.Kind]++
					at := time.Duration(e.At)
					if at < warmUp || at > 18*time.Minute || i > 0 && s.Events[i-1].At > e.At {
						t.Fatalf("%s, seed %d: event %d at %s", churn, seed, i, at)
					}
					switch e.Kind {
					case PodComes:
						pods[e.Binding] += max(e.Pods, 1)
					case PodGoes:
						pods[e.Binding] -= max(e.Pods, 1)
					}
					if pods[e.Binding] < 0 && e.Binding != "" {
						t.Fatalf("%s, seed %d: at %s %s has %d pods", churn, seed, at, e.Binding, pods[e.Binding])
					}
				}
				if count[Crash] != 1 || count[ExternalRevoke] != 2 {
					t.Fatalf("%s, seed %d: %v", churn, seed, count)
				}
				if n := len(s.Events) - 3; (n == 0) != (churn == string(Steady)) {
					t.Fatalf("%s, seed %d: %d events of the churn", churn, seed, n)
				}
				if churn == string(Boundary) || churn == string(ScaleToZero) || churn == string(Rolling) {
					for _, b := range s.Bindings {
						if pods[b.Name] != b.Pods {
							t.Fatalf("%s, seed %d: %s ends with %d pods of %d", churn, seed, b.Name, pods[b.Name], b.Pods)
						}
					}
				}
			}
		}
	}
}

// TestPlanErrors has plans that no script can be made of.
func TestPlanErrors(t *testing.T) {
	good := Plan{Churn: Boundary, Duration: time.Hour, Bindings: 8}
	for name, change := range map[string]func(p *Plan){
		"churn": func(p *Plan) { p.Churn = "chaos" }, "short": func(p *Plan) { p.Duration = time.Minute },
		"long": func(p *Plan) { p.Duration = 101 * 24 * time.Hour }, "none": func(p *Plan) { p.Bindings = 0 }, "many": func(p *Plan) { p.Bindings = 501 },
	} {
		p := good
		change(&p)
		if _, err := NewScript(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
