package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func simulated(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(append([]string{"simulate"}, args...), strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// TestSimulateRefusals has calls that cannot be answered: each is exit status 2 and says what to do.
func TestSimulateRefusals(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"duration":"1m","bindings":[{"name":"a/b","port":99999}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	empty, torn := filepath.Join(folder, "empty.json"), filepath.Join(folder, "torn.json")
	for path, text := range map[string]string{empty: "\n", torn: "{\n\"seed\": 1,"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"v3.4.0 --script " + empty, "the script is empty"},
		{"v3.4.0 --script " + torn, "line 2: the script ends within an object"},
		{"", "requires at least 1 arg"},
		{"v9.9.9", `no design is called "v9.9.9"`},
		{"v3.4.0 v3.4.0", "named twice"},
		{"v3.4.0 --churn chaos", `no churn is called "chaos"`},
		{"v3.4.0 --duration 1m", "a duration of 1m0s is not between 5m0s"},
		{"v3.4.0 --bindings 0", "0 bindings"},
		{"v3.4.0 --seeds 0", "--seeds has to be from 1"},
		{"v3.4.0 --seeds 9223372036854775807", "--seeds has to be from 1"},
		{"v3.4.0 --seed 18446744073709551615 --seeds 2", "the last seed below 2^64"},
		{"v3.4.0 --workers 0", "--workers has to be from 1"},
		{"v3.4.0 --workers 1000000", "--workers has to be from 1"},
		{"v3.4.0 --sync-period 1ns", "--sync-period has to be at least 1s"},
		{"v3.4.0 --repair-bound -1s", "--repair-bound cannot be negative"},
		{"v3.4.0 --endpoint http://127.0.0.1:1 --speed NaN", "--speed has to be positive"},
		{"v3.4.0 --endpoint http://127.0.0.1:1 --speed Inf", "--speed has to be positive"},
		{"v3.4.0 --endpoint http://127.0.0.1:1 --speed 0", "--speed has to be positive"},
		{"v3.4.0 --endpoint nonsense", `--endpoint "nonsense" is no URL`},
		{"v3.4.0 -o " + folder + "/none/run.ndjson", "there is no folder"},
		{"v3.4.0 --seeds 2 --plot " + folder + "/none/plot.svg", "there is no folder"},
		{"v3.4.0 --write-script " + bad + "/script.json", "there is no folder"},
		{"v3.4.0 --save " + bad, "it is no folder"},
		{"v3.4.0 --crashes -1", "less often than never"},
		{"v3.4.0 --read-lag fast", "--read-lag"},
		{"v3.4.0 --faults " + folder + "/none.json", "--faults"},
		{"v3.4.0 --script " + bad, "bindings[0]: port 99999"},
		{"v3.4.0 --script " + bad + " --churn random", "--script says what happens"},
		{"v3.4.0 --script x.json --seeds 3", "are of one run"},
		{"v3.4.0 --plot x.svg", "--plot draws a sweep"},
		{"v3.4.0 --speed 2", "without --endpoint time is simulated"},
		{"v3.4.0 --endpoint http://127.0.0.1:1 --read-lag 1s", "the endpoint has its own faults"},
		{"v3.4.0 --endpoint http://127.0.0.1:1 --save x", "--save and --format have no meaning"},
		{"v3.4.0 --endpoint http://127.0.0.1:1", "--write-world"},
		{"v3.4.0 --format pdf", `--format "pdf" is none of`},
		{"v3.4.0 --seeds 2 --format html", "of a sweep is none of text|json|markdown"},
		{"v3.4.0 --duration 5m -o " + folder, "it is a folder"},
	} {
		status, _, stderr := simulated(t, strings.Fields(c.args)...)
		if status != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %q, want %q", c.args, status, stderr, c.want)
		}
	}
}

// TestSimulateScripts: what --write-script writes runs as what it was made from; --save leaves scripts whose printed command gives
// the saved history again.
func TestSimulateScripts(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	plan := []string{"v2.7.2", "--churn", "boundary", "--duration", "10m", "--bindings", "3", "--seed", "4"}
	status, direct, stderr := simulated(t, append(plan, "-o", at("direct.ndjson"), "--save", at("save"))...)
	if status != exitViolated {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	if status, _, stderr := simulated(t, append(plan, "--write-script", at("script.json"), "--write-world", at("world.json"))...); status != exitHolds {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	if status, _, stderr := simulated(t, "v2.7.2", "--script", at("script.json"), "-o", at("again.ndjson")); status != exitViolated {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	same(t, at("direct.ndjson"), at("again.ndjson"))
	commands := 0
	for _, line := range strings.Split(direct, "\n") {
		command, found := strings.CutPrefix(line, "  linearize simulate ")
		if !found {
			continue
		}
		commands++
		args := strings.Fields(command)
		saved := args[len(args)-1]
		args[len(args)-1] = at("shrunk.ndjson")
		if status, _, stderr := simulated(t, args...); status != exitViolated {
			t.Fatalf("%s: exit status %d: %s", command, status, stderr)
		}
		same(t, saved, at("shrunk.ndjson"))
	}
	if commands == 0 {
		t.Errorf("no violation was saved:\n%s", direct)
	}
	if status, _, _ := simulated(t, "v2.7.2", "confirm-authorize", "--duration", "6m", "--bindings", "2", "--plot", at("plot.svg"), "--format", "json", "-o", at("sweep.json")); status != exitViolated {
		t.Errorf("a sweep with v2.7.2 has exit status %d", status)
	}
	for _, name := range []string{"plot.svg", "sweep.json", "world.json"} {
		if info, err := os.Stat(at(name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}
