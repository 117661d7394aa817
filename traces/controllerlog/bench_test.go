package controllerlog_test

import (
	"strings"
	"testing"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

// BenchmarkRead reads a log of which one line in twenty tells of a call, with the models that the controller logs in
// between, as kubectl, docker and containerd deliver it.
func BenchmarkRead(b *testing.B) {
	model := info(at("10:00:00"), "successfully built model", `"model":"`+strings.Repeat(`{\"id\":\"ns/ingress\",\"resources\":{}},`, 50)+`"`)
	var lines []string
	for range 500 {
		lines = append(lines, authorizing(at("10:00:00"), group, "80-90"), authorized(at("10:00:00"), group))
		for range 38 {
			lines = append(lines, model)
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	carriers := map[string]func(string) string{
		"bare":    func(s string) string { return s },
		"kubectl": func(s string) string { return "[pod/lbc-7d/controller] 2026-08-28T10:00:00.1Z " + s },
		"docker": func(s string) string {
			return `{"log":"` + escape.Replace(s) + `\n","stream":"stderr","time":"2026-08-28T10:00:00.1Z"}`
		},
		"cri": func(s string) string { return "2026-08-28T10:00:00.1Z stderr F " + s },
	}
	for _, name := range []string{"bare", "kubectl", "docker", "cri"} {
		var text strings.Builder
		for _, line := range lines {
			text.WriteString(carriers[name](line) + "\n")
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				h := &traces.History{Inputs: []traces.Input{{Path: "c.log"}}}
				if err := controllerlog.Read(strings.NewReader(text.String()), h, 0, controllerlog.Options{}); err != nil {
					b.Fatal(err)
				}
				if len(h.Operations) != 500 {
					b.Fatalf("%d operations, %+v", len(h.Operations), h.Inputs[0])
				}
			}
		})
	}
}
