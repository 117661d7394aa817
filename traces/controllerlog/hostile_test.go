package controllerlog_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

// Nothing in a line may stop the reading of the next: the call after it is always found.
func TestHostileLines(t *testing.T) {
	deep := strings.Repeat("[", 200_000)
	tests := []struct {
		name, line string
		rejected   int
	}{
		{"torn in the middle", authorizing(at("10:00:00"), group, "1-2")[:100], 1},
		{"wrong types", `{"level":1,"ts":[],"msg":"revoked securityGroup ingress","securityGroupID":{"a":1}}`, 1},
		{"no group", info(at("09:00:00"), "authorizing securityGroup ingress"), 1},
		{"no target group", info(at("09:00:00"), "registering targets", `"arn":5`), 1},
		{"deep nesting", info(at("09:00:00"), "revoking securityGroup ingress", `"permission":`+deep), 1},
		{"console, broken fields", "2026-08-28T10:00:00Z\tINFO\trevoking securityGroup ingress\t{\"securityGroupID\"", 1},
		{"console, another message", "2026-08-28T10:00:00Z\tINFO\thello\t{broken", 0},
		{"huge port", info(at("09:00:00"), "revoking securityGroup ingress", sg("sg-x"), permission("99999999999-2", "")), 0},
		{"port out of range", info(at("09:00:00"), "revoking securityGroup ingress", sg("sg-x"), permission("80-70000", "")), 0},
		{"escapes and HTML", info(at("09:00:00"), "Successful reconcile", `"tgb":"\u001b[31m<script>/x"`), 0},
		{"invalid UTF-8", info(at("09:00:00"), "Successful reconcile", "\"tgb\":\"\xff\xfe\""), 0},
		{"invalid UTF-8 in a pod's name", "\xff\xfe c " + info(at("09:00:00"), "Successful reconcile", tgb("a")), 0},
		{"a lone brace", "{", 0},
		{"null bytes", "\x00\x00{\x00}", 0},
		{"docker's envelope around nothing", `{"log":"","stream":"stderr"}`, 0},
		{"docker's envelope of the wrong type", `{"log":5,"stream":[]}`, 0},
		{"a prefix without end", strings.Repeat("x ", 5000) + "{", 0},
		{"year zero", info(`"0000-01-01T00:00:00Z"`, "Successful reconcile", tgb("a")), 1},
		{"year 9999", info(`"9999-12-31T23:59:59Z"`, "Successful reconcile", tgb("a")), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := read(t, tt.line, authorizing(at("10:00:00"), group, "80-90"), authorized(at("10:00:01"), group))
			if h.Inputs[0].Rejected != tt.rejected {
				t.Errorf("%+v", h.Inputs[0])
			}
			found := false
			for _, op := range h.Operations {
				found = found || op.Group == group && op.Outcome == traces.Succeeded
			}
			if !found {
				t.Errorf("the next call is lost: %v", operations(h))
			}
		})
	}
}

var exes = bytes.Repeat([]byte("x"), 64<<10)

// endless delivers one line of n bytes without holding it, then the tail.
type endless struct {
	n    int64
	tail io.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return e.tail.Read(p)
	}
	n := copy(p[:min(e.n, int64(len(p)))], exes)
	e.n -= int64(n)
	return n, nil
}

func TestLineOfOneGiB(t *testing.T) {
	tail := "\n" + authorizing(at("10:00:00"), group, "80-90") + "\n" + authorized(at("10:00:01"), group) + "\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}}}
	if err := controllerlog.Read(&endless{1 << 30, strings.NewReader(tail)}, h, 0, controllerlog.Options{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MiB were allocated", used>>20)
	}
	checkInput(t, h)
	if len(h.Operations) != 1 || h.Inputs[0].Rejected != 1 {
		t.Errorf("%d operations, %+v", len(h.Operations), h.Inputs[0])
	}
}

// Parts of one line that never end must not pile up.
func TestEndlessParts(t *testing.T) {
	part := "2026-08-28T10:00:00.123456789Z stderr P " + strings.Repeat("x", 1<<20) + "\n"
	h := readText(t, strings.Repeat(part, 9)+authorizing(at("10:00:00"), group, "1-2")+"\n", controllerlog.Options{})
	if in := h.Inputs[0]; in.Rejected == 0 || len(h.Operations) != 1 {
		t.Errorf("%d operations, %+v", len(h.Operations), in)
	}
}

func TestBrokenStreamKeepsWhatCameBefore(t *testing.T) {
	text := authorizing(at("10:00:00"), group, "1-2") + "\n" + authorized(at("10:00:00"), group) + "\n"
	broken := errors.New("broken")
	h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}}}
	err := controllerlog.Read(io.MultiReader(strings.NewReader(text), failing{broken}), h, 0, controllerlog.Options{})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if len(h.Operations) != 1 || h.Operations[0].Outcome != traces.Succeeded {
		t.Errorf("%v", operations(h))
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Fuzzing runs whole logs; every invariant of checkInput must hold, and reading again must give the same history.
func FuzzRead(f *testing.F) {
	lines := []string{
		authorizing(at("10:00:00"), group, "80-90"), authorized(at("10:00:01"), group), retrying(at("10:00:01"), "true"),
		revoking("1627681599.0271826", other, "1-2"), failed(at("10:00:02"), podError, notFoundV2, tgb("a")),
		failed(at("10:00:02"), "Reconciler error", notFoundV1, `"controller":"targetGroupBinding"`, `"name":"a"`, `"namespace":"ns"`),
		version(at("09:00:00"), "v3.4.0"), waiting(at("09:00:01")), acquired(at("09:00:02")),
		"I0828 07:00:20.000500       1 leaderelection.go:258] successfully acquired lease kube-system/x",
		"2026-08-28T10:00:00Z\tINFO\tauthorizing securityGroup ingress\t{" + sg(group) + "," + permission("80-90", managed) + "}",
		"2026-08-28T10:00:00.123456789Z stderr P {\"level\"", "[pod/a/b] 2026-08-28T10:00:00.1Z {}",
		`{"log":"{\"msg\":\"revoked securityGroup ingress\"}\n","stream":"stderr","time":"2026-08-28T10:00:00Z"}`,
		info(at("10:00:00"), "registering targets", `"arn":"a"`, `"targets":[{"Id":"i","Port":1}]`),
		info(at("10:00:00"), "creating securityGroup", `"resourceID":"r"`),
		info(at("10:00:01"), "created securityGroup", `"resourceID":"r"`, sg(group)),
		info(at("10:00:01"), "deleted securityGroup", `"ID":"`+group+`"`),
		info(at("10:00:01"), "Skipping targetgroupbinding reconcile", tgb("a")),
	}
	for _, line := range lines {
		f.Add([]byte(line))
	}
	f.Add([]byte(strings.Join(lines, "\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		controllerlog.Sniff(data)
		var written [2]bytes.Buffer
		for i := range written {
			h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}}}
			if err := controllerlog.Read(bytes.NewReader(data), h, 0, controllerlog.Options{}); err != nil {
				t.Fatal(err)
			}
			checkInput(t, h)
			if err := traces.WriteHistory(&written[i], h); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(written[0].Bytes(), written[1].Bytes()) {
			t.Errorf("two readings differ:\n%s\n%s", &written[0], &written[1])
		}
	})
}
