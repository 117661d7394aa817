package controllerlog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

// Every carrier must deliver the same call. PID is the process that the call is attributed to.
func TestCarriers(t *testing.T) {
	start := authorizing(at("10:00:00"), group, "80-90")
	end := authorized(at("10:00:01"), group)
	quote := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	docker := func(line, clock string) string {
		return quote(map[string]string{"log": line + "\n", "stream": "stderr", "time": "2026-08-28T" + clock + "Z"})
	}
	long := strings.Replace(start, `"msg"`, `"padding":"`+strings.Repeat("x ", 9000)+`","msg"`, 1)
	tests := []struct {
		name, process string
		lines         []string
	}{
		{"kubectl logs", "controller", []string{start, end}},
		{"kubectl logs --timestamps", "controller",
			[]string{"2026-08-28T10:00:00.123456789Z " + start, "2026-08-28T10:00:01.123456789Z " + end}},
		{"kubectl logs --prefix", "lbc-7d-jvm97",
			[]string{"[pod/lbc-7d-jvm97/aws-load-balancer-controller] " + start, "[pod/lbc-7d-jvm97/aws-load-balancer-controller] " + end}},
		{"kubectl logs --prefix --timestamps", "lbc-7d-jvm97",
			[]string{"[pod/lbc-7d-jvm97/controller] 2026-08-28T10:00:00.1Z " + start, "[pod/lbc-7d-jvm97/controller] 2026-08-28T10:00:01.1Z " + end}},
		{"stern", "lbc-7d-jvm97", []string{"lbc-7d-jvm97 controller " + start, "lbc-7d-jvm97 controller " + end}},
		{"stern, coloured", "lbc-7d-jvm97",
			[]string{"\x1b[38;5;2mlbc-7d-jvm97\x1b[0m \x1b[38;5;2mcontroller\x1b[0m " + start, "\x1b[1;32mlbc-7d-jvm97\x1b[0m controller " + end}},
		{"stern -A -t", "lbc-7d-jvm97",
			[]string{"kube-system lbc-7d-jvm97 controller 2026-08-28T10:00:00.1Z " + start, "kube-system lbc-7d-jvm97 controller 2026-08-28T10:00:01.1Z " + end}},
		{"stern -o json", "lbc-7d-jvm97",
			[]string{quote(map[string]string{"message": start + "\n", "podName": "lbc-7d-jvm97", "containerName": "controller"}),
				quote(map[string]string{"message": end + "\n", "podName": "lbc-7d-jvm97", "containerName": "controller"})}},
		{"kail", "lbc-7d-jvm97",
			[]string{"kube-system/lbc-7d-jvm97[controller]: " + start, "kube-system/lbc-7d-jvm97[controller]: " + end}},
		{"docker compose", "lbc-1", []string{"lbc-1  | " + start, "lbc-1  | " + end}},
		{"pod and time", "jvm97", []string{"jvm97 2026-08-28T10:00:00.1Z " + start, "jvm97 2026-08-28T10:00:01.1Z " + end}},
		{"syslog", "controller",
			[]string{"Aug 28 10:00:00 node1 lbc[17]: " + start, "Aug 28 10:00:01 node1 lbc[17]: " + end}},
		{"docker json-file", "controller", []string{docker(start, "10:00:00.123456789"), docker(end, "10:00:01.123456789")}},
		{"docker json-file, cut at 16 KiB", "controller",
			[]string{quote(map[string]string{"log": long[:16<<10], "stream": "stderr", "time": "2026-08-28T10:00:00.1Z"}),
				docker(long[16<<10:], "10:00:00.1"), docker(end, "10:00:01.1")}},
		{"fluent-bit", "lbc-7d-jvm97",
			[]string{quote(map[string]any{"log": start, "stream": "stderr", "kubernetes": map[string]string{"pod_name": "lbc-7d-jvm97"}}),
				quote(map[string]any{"log": end, "stream": "stderr", "kubernetes": map[string]string{"pod_name": "lbc-7d-jvm97"}})}},
		{"containerd", "controller",
			[]string{"2026-08-28T10:00:00.123456789Z stderr F " + start, "2026-08-28T10:00:01.123456789Z stderr F " + end}},
		{"containerd, cut into parts, with the other stream in between", "controller",
			[]string{"2026-08-28T10:00:00.123456789Z stderr P " + start[:99], "2026-08-28T10:00:00.2Z stdout F hello",
				"2026-08-28T10:00:00.123456790Z stderr P " + start[99:140], "2026-08-28T10:00:00.123456791Z stderr F " + start[140:],
				"2026-08-28T10:00:01.123456789Z stderr F " + end}},
		{"CRLF", "controller", []string{start + "\r", end + "\r"}},
		{"byte order mark", "controller", []string{"\xef\xbb\xbf" + start, end}},
		{"python's json.dumps", "controller",
			[]string{strings.ReplaceAll(start, `":`, `": `), strings.ReplaceAll(end, `":`, `": `)}},
		{"lines of other programs and stack traces in between", "controller",
			[]string{"I0828 10:00:00.000001       1 controller.go:5] syncing", start, "", "goroutine 1 [running]:", "main.main()",
				"\t/src/main.go:5 +0x1d", `{"level":"info","ts":"2026-08-28T10:00:00Z","msg":"hello","x":{"msg":"revoking securityGroup ingress"}}`,
				`{"msg":"revoked"}`, "time=\"x\" level=info msg=hi", "caf\xe9", end}},
		{"zap's console encoding", "controller",
			[]string{"2026-08-28T10:00:00Z\tINFO\tauthorizing securityGroup ingress\t{" + sg(group) + "," + permission("80-90", managed) + "}",
				"2026-08-28T10:00:01Z\tINFO\tcontrollers.x\tauthorized securityGroup ingress\t{" + sg(group) + "}"}},
		{"zap's console encoding, with a prefix and colours", "lbc-7d-jvm97",
			[]string{"[pod/lbc-7d-jvm97/controller] 2026-08-28T10:00:00Z\t\x1b[34mINFO\x1b[0m\tauthorizing securityGroup ingress\t{" + sg(group) + "," + permission("80-90", managed) + "}",
				"[pod/lbc-7d-jvm97/controller] 2026-08-28T10:00:01Z\tINFO\tauthorized securityGroup ingress\t{" + sg(group) + "}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := read(t, tt.lines...)
			if len(h.Operations) != 1 {
				t.Fatalf("%d operations: %v, %+v", len(h.Operations), operations(h), h.Inputs[0])
			}
			op := h.Operations[0]
			got := fmt.Sprintf("%s %s %v %v %d %s", op.Process, op.Group, op.Permissions, op.Call, op.Outcome, op.Return)
			want := fmt.Sprintf("%s %s %v 2026-08-28T10:00:00Z %d 2026-08-28T10:00:01.999999999Z", tt.process, group,
				[]traces.Permission{{Rule: traces.Rule{Protocol: "tcp", FromPort: 80, ToPort: 90, Source: "sg-lb"}, Description: managed}},
				traces.Succeeded)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if in := h.Inputs[0]; in.Rejected != 0 || in.Used != 2 || len(in.Notes) != 0 {
				t.Errorf("%+v", in)
			}
			if !controllerlog.Sniff([]byte(strings.Join(tt.lines, "\n"))) {
				t.Error("not recognized")
			}
		})
	}
}

func TestTimeStamps(t *testing.T) {
	tests := []struct{ ts, earliest, latest string }{
		{`"2026-08-28T10:00:00Z"`, "2026-08-28T10:00:00Z", "2026-08-28T10:00:00.999999999Z"},
		{`"2026-08-28T12:00:00+02:00"`, "2026-08-28T10:00:00Z", "2026-08-28T10:00:00.999999999Z"},
		{`"2021-07-30T21:46:39.027Z"`, "2021-07-30T21:46:39.027Z", "2021-07-30T21:46:39.027999999Z"},
		{`"2021-07-30T21:46:39.027+0000"`, "2021-07-30T21:46:39.027Z", "2021-07-30T21:46:39.027999999Z"},
		{`"2021-07-30T21:46:39.123456789Z"`, "2021-07-30T21:46:39.123456789Z", "2021-07-30T21:46:39.123456789Z"},
		{`1627681599.0271826`, "2021-07-30T21:46:39.0271821Z", "2021-07-30T21:46:39.0271831Z"},
		{`1627681599`, "2021-07-30T21:46:38.9999995Z", "2021-07-30T21:46:39.0000005Z"},
		{`1.6276815990271826e+09`, "2021-07-30T21:46:39.027182079Z", "2021-07-30T21:46:39.027183079Z"},
		{`1627681599027.1826`, "2021-07-30T21:46:39.0271821Z", "2021-07-30T21:46:39.0271831Z"},
		{`1627681599027182600`, "2021-07-30T21:46:39.0271821Z", "2021-07-30T21:46:39.0271831Z"},
	}
	for _, tt := range tests {
		h := read(t, info(tt.ts, "Successful reconcile", tgb("a")))
		if len(h.Observations) != 1 {
			t.Errorf("%s: %+v", tt.ts, h.Inputs[0])
			continue
		}
		got := []string{h.Observations[0].Earliest.String(), h.Observations[0].Latest.String()}
		if diff := cmp.Diff([]string{tt.earliest, tt.latest}, got); diff != "" {
			t.Errorf("%s: %s", tt.ts, diff)
		}
	}
	for _, ts := range []string{`"yesterday"`, `""`, `null`, `-5`, `"..."`, `{}`, `1e400`, `"10:00:00 2026/08"`} {
		if h := read(t, info(ts, "Successful reconcile", tgb("a"))); h.Inputs[0].Rejected != 1 {
			t.Errorf("%s: %+v", ts, h.Inputs[0])
		}
		h := read(t, "2026-08-28T10:00:00.5Z "+info(ts, "Successful reconcile", tgb("a")))
		want := []string{"1 controller reconciled ns/a 10:00:00.5..10:00:00.599999999"}
		if diff := cmp.Diff(want, observations(h)); diff != "" {
			t.Errorf("%s, with the carrier's time: %s", ts, diff)
		}
	}
}

// A log that was fetched twice and joined holds lines twice; only the carrier's nanoseconds tell.
func TestDuplicates(t *testing.T) {
	start, end := revoking(at("10:00:00"), group, "1-2"), revoked(at("10:00:00"), group)
	stamp := func(nanos, line string) string { return "2026-08-28T10:00:00." + nanos + "Z " + line }
	h := read(t, stamp("000000001", start), stamp("000000002", end), stamp("000000001", start), stamp("000000002", end))
	if in := h.Inputs[0]; len(h.Operations) != 1 || in.Duplicates != 2 {
		t.Errorf("%d operations, %+v", len(h.Operations), in)
	}
	h = read(t, start, end, start, end)
	if in := h.Inputs[0]; len(h.Operations) != 2 || in.Duplicates != 0 {
		t.Errorf("without stamps: %d operations, %+v", len(h.Operations), in)
	}
}

func TestSniffRefusesOtherFormats(t *testing.T) {
	for _, s := range []string{
		"", "\n\n", "hello\nworld\n", "{}", `{"history":"v1"}` + "\n" + `{"seq":1,"op":"RevokeSecurityGroupIngress"}`,
		`{"Records":[{"eventVersion":"1.08","eventName":"RevokeSecurityGroupIngress","eventTime":"2026-08-28T10:00:00Z"}]}`,
		`{"SecurityGroupRules":[]}`, `{"apiVersion":"v1","items":[],"kind":"List"}`, "apiVersion: v1\nkind: List\n",
		`{"log":"hello\n","stream":"stdout","time":"2026-08-28T10:00:00Z"}`, "a\tb\tc\n", "\xff\xfe\x00",
	} {
		if controllerlog.Sniff([]byte(s)) {
			t.Errorf("%q is taken for a controller's log", s)
		}
	}
	start := authorizing(at("10:00:00"), group, "1-2")
	for _, s := range []string{start[:120], "some other program\n" + start, info(at("10:00:00"), "another message")} {
		if !controllerlog.Sniff([]byte(s)) {
			t.Errorf("%q is not recognized", s)
		}
	}
}
