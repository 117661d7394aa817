package snapshot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"linearize.example/traces"
	"linearize.example/traces/snapshot"
)

const bindings = `{"apiVersion":"v1","items":[
	{"apiVersion":"elbv2.k8s.aws/v1beta1","kind":"TargetGroupBinding",
	 "metadata":{"annotations":{"elbv2.k8s.aws/checkpoint":"aa/bb","elbv2.k8s.aws/checkpoint-timestamp":"1"},
		"creationTimestamp":"2026-08-01T10:00:00Z","finalizers":["elbv2.k8s.aws/resources"],"generation":1,"name":"k8s-api","namespace":"test"},
	 "spec":{"ipAddressType":"ipv4","networking":{"ingress":[
		{"from":[{"securityGroup":{"groupID":"sg-lb"}},{"ipBlock":{"cidr":"10.1.2.3/16"}}],
		 "ports":[{"port":3000,"protocol":"TCP"},{"port":"metrics"},{"protocol":"UDP"}]},
		{"from":[{"ipBlock":{"cidr":"2001:DB8::/32"}}]}]},
		"serviceRef":{"name":"api","port":80},"targetGroupARN":"arn:tg/api","targetType":"ip","vpcID":"vpc-1"}},
	{"apiVersion":"elbv2.k8s.aws/v1beta1","kind":"TargetGroupBinding",
	 "metadata":{"creationTimestamp":"2026-08-01T10:00:00Z","deletionTimestamp":"2026-08-02T10:00:00Z","name":"k8s-old","namespace":"test"},
	 "spec":{"serviceRef":{"name":"old","port":"http"},"targetGroupARN":"arn:tg/old","targetType":"instance"}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"api","namespace":"test"},"spec":{"ports":[]}}
	],"kind":"List","metadata":{"resourceVersion":""}}`

func TestReadBindings(t *testing.T) {
	day := func(d int) traces.Instant { return traces.At(time.Date(2026, 8, d, 10, 0, 0, 0, time.UTC)) }
	want := []traces.Binding{
		{Name: "test/k8s-api", TargetGroup: "arn:tg/api", TargetType: "ip", Created: day(1), Deleted: traces.Forever, Checkpoint: "aa/bb",
			Needs: []traces.Need{
				{Protocol: "tcp", Port: 3000, Source: "sg-lb"},
				{Protocol: "tcp", PortName: "metrics", Source: "sg-lb"},
				{Protocol: "udp", Port: -1, Source: "sg-lb"},
				{Protocol: "tcp", Port: 3000, Source: "10.1.0.0/16"},
				{Protocol: "tcp", PortName: "metrics", Source: "10.1.0.0/16"},
				{Protocol: "udp", Port: -1, Source: "10.1.0.0/16"},
				{Protocol: "tcp", Port: -1, Source: "2001:db8::/32"},
			}},
		{Name: "test/k8s-old", TargetGroup: "arn:tg/old", TargetType: "instance", Created: day(1), Deleted: day(2)},
	}
	asYAML, err := yaml.JSONToYAML([]byte(bindings))
	if err != nil {
		t.Fatal(err)
	}
	items := bindings[strings.IndexByte(bindings, '[') : strings.LastIndexByte(bindings, ']')+1]
	single := func(n int) string {
		starts := []int{strings.Index(items, `{"apiVersion"`), strings.Index(items, "\n\t{\"apiVersion\":\"elbv2.k8s.aws/v1beta1\",\"kind\":\"TargetGroupBinding\",\n\t \"metadata\":{\"creation")}
		end := []int{starts[1], strings.Index(items, "\n\t{\"apiVersion\":\"v1\"")}
		return strings.TrimSuffix(strings.TrimSpace(items[starts[n]:end[n]]), ",")
	}
	first, err := yaml.JSONToYAML([]byte(single(0)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := yaml.JSONToYAML([]byte(single(1)))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, input string }{
		{"-o json", bindings},
		{"-o yaml", string(asYAML)},
		{"jq .items", items},
		{"one after the other", single(0) + "\n" + single(1)},
		{"several YAML documents", "---\n" + string(first) + "---\r\n" + string(second)},
		{"several YAML documents, commented", "# from the cluster\n" + string(first) + "\n--- # next\n" + string(second) + "---\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := snapshot.ReadBindings(strings.NewReader(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if !snapshot.SniffBindings([]byte(tt.input)) || snapshot.SniffSnapshot([]byte(tt.input)) {
				t.Error("not recognized")
			}
		})
	}
}

func TestNoBindings(t *testing.T) {
	for _, s := range []string{`{"apiVersion":"v1","items":[],"kind":"List","metadata":{}}`, "apiVersion: v1\nitems: []\nkind: List\n"} {
		got, err := snapshot.ReadBindings(strings.NewReader(s))
		if err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", s, got, err)
		}
		if !snapshot.SniffBindings([]byte(s)) {
			t.Errorf("%s is not recognized", s)
		}
	}
}

// A port of zero is what the controller turns into all ports.
func TestPortZero(t *testing.T) {
	got, err := snapshot.ReadBindings(strings.NewReader(`{"kind":"TargetGroupBinding","metadata":{"name":"a"},"spec":{"networking":{"ingress":[
		{"from":[{"securityGroup":{"groupID":"sg-lb"}}],"ports":[{"port":0}]}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []traces.Binding{{Name: "default/a", Created: traces.Beginning, Deleted: traces.Forever,
		Needs: []traces.Need{{Protocol: "tcp", Port: -1, Source: "sg-lb"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadBindingsErrors(t *testing.T) {
	ingress := func(rule string) string {
		return `{"kind":"List","items":[{"kind":"TargetGroupBinding","metadata":{"name":"a","namespace":"ns"},"spec":{"networking":{"ingress":[` +
			rule + `]}}}]}`
	}
	ports := func(list string) string {
		return ingress(`{"from":[{"securityGroup":{"groupID":"sg-lb"}}],"ports":[` + list + `]}`)
	}
	const at = "document 1, items[0] (ns/a).spec.networking.ingress[0]"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	tests := []struct{ name, input, want string }{
		{"empty", "", "it is empty"},
		{"only a comment", "# nothing", "it holds no document"},
		{"no object of Kubernetes", `{"a":1}`, "document 1: it has no kind"},
		{"a page", `{"kind":"List","metadata":{"continue":"abc"},"items":[]}`, "document 1: it is only a part of the answer: metadata.continue"},
		{"second document", "kind: List\nitems: []\n---\na: 1\n", "document 2: it has no kind"},
		{"no name", `{"kind":"TargetGroupBinding"}`, "document 1.metadata.name: is missing"},
		{"bad time", `{"kind":"TargetGroupBinding","metadata":{"name":"a","creationTimestamp":"today"}}`, "document 1 (default/a).metadata.creationTimestamp: "},
		{"wrong type", `{"kind":"List","items":{"a":1}}`, "document 1.items: is a JSON object"},
		{"wrong type inside", ingress(`{"from":"x"}`), "document 1, items[0].spec.networking.ingress.from: is a JSON string"},
		{"no peer", ingress(`{"from":[{}]}`), at + ".from[0]: it has neither ipBlock nor securityGroup"},
		{"two peers in one", ingress(`{"from":[{"ipBlock":{"cidr":"::/0"},"securityGroup":{"groupID":"sg-1"}}]}`), at + ".from[0]: it has both"},
		{"no CIDR", ingress(`{"from":[{"ipBlock":{}}]}`), at + ".from[0].ipBlock.cidr: is missing"},
		{"no group", ingress(`{"from":[{"securityGroup":{}}]}`), at + ".from[0].securityGroup.groupID: is missing"},
		{"protocol", ports(`{"protocol":"ICMP"}`), at + `.ports[0].protocol: "ICMP" is neither TCP nor UDP`},
		{"huge port", ports(`{"port":1},{"port":70000}`), at + ".ports[1].port: 70000 is outside of 0..65535"},
		{"negative port", ports(`{"port":-1}`), at + ".ports[0].port: -1 is outside of"},
		{"half a port", ports(`{"port":1.5}`), at + ".ports[0].port: 1.5 is no port"},
		{"port of a wrong type", ports(`{"port":[1]}`), at + ".ports[0].port: is neither a number nor a name"},
		{"empty name", ports(`{"port":""}`), at + ".ports[0].port: the name is empty"},
		{"aliases that multiply", bomb, "document 1 is neither JSON nor YAML"},
		{"deep nesting", strings.Repeat(`{"spec":`, 100_000), "document 1"},
	}
	for _, tt := range tests {
		_, err := snapshot.ReadBindings(strings.NewReader(tt.input))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %.300v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzReadBindings(f *testing.F) {
	f.Add([]byte(bindings))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- kind: TargetGroupBinding\n  metadata: {name: a}\n---\nkind: Pod\n"))
	f.Add([]byte("kind: TargetGroupBinding\nmetadata: &m {name: a, namespace: b}\nspec: {networking: {ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: http}]}]}}\nx: *m\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot.SniffBindings(data)
		all, err := snapshot.ReadBindings(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		for _, b := range all {
			if !strings.Contains(b.Name, "/") || b.Created == traces.Forever {
				t.Errorf("%+v", b)
			}
			for _, n := range b.Needs {
				if n.Source == "" || n.Port == 0 && n.PortName == "" || n.Port < -1 {
					t.Errorf("%s: %+v", b.Name, n)
				}
			}
		}
	})
}
