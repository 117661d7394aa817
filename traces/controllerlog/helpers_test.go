package controllerlog_test

import (
	"fmt"
	"strings"
	"testing"

	"linearize.example/traces"
	"linearize.example/traces/controllerlog"
)

const (
	group   = "sg-0aaa"
	other   = "sg-0bbb"
	managed = "elbv2.k8s.aws/targetGroupBinding=shared"
)

// at is a time stamp on the tests' day, as releases since v2.5.0 write it.
func at(clock string) string { return `"2026-08-28T` + clock + `Z"` }

func info(ts, msg string, fields ...string) string {
	return `{"level":"info","ts":` + ts + `,"msg":"` + msg + `"` + join(fields) + "}"
}

func failed(ts, msg, text string, fields ...string) string {
	return fmt.Sprintf(`{"level":"error","ts":%s,"msg":"%s"%s,"error":%q}`, ts, msg, join(fields), text)
}

func join(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return "," + strings.Join(fields, ",")
}

func tgb(name string) string { return `"tgb":{"name":"` + name + `","namespace":"ns"}` }

func sg(id string) string { return `"securityGroupID":"` + id + `"` }

func permission(ports string, description string) string {
	from, to, _ := strings.Cut(ports, "-")
	return `"permission":[{"FromPort":` + from + `,"IpProtocol":"tcp","IpRanges":null,"Ipv6Ranges":null,` +
		`"PrefixListIds":null,"ToPort":` + to + `,"UserIdGroupPairs":[{"Description":"` + description +
		`","GroupId":"sg-lb","GroupName":null,"PeeringStatus":null,"UserId":null,"VpcId":null,` +
		`"VpcPeeringConnectionId":null}]}]`
}

func authorizing(ts, id, ports string) string {
	return info(ts, "authorizing securityGroup ingress", sg(id), permission(ports, managed))
}

func authorized(ts, id string) string { return info(ts, "authorized securityGroup ingress", sg(id)) }

func revoking(ts, id, ports string) string {
	return info(ts, "revoking securityGroup ingress", sg(id), permission(ports, managed))
}

func revoked(ts, id string) string { return info(ts, "revoked securityGroup ingress", sg(id)) }

func read(t *testing.T, lines ...string) *traces.History {
	t.Helper()
	return readText(t, strings.Join(lines, "\n")+"\n", controllerlog.Options{})
}

func readText(t *testing.T, text string, opts controllerlog.Options) *traces.History {
	t.Helper()
	h := &traces.History{Inputs: []traces.Input{{Path: "logs/c.log"}}}
	if err := controllerlog.Read(strings.NewReader(text), h, 0, opts); err != nil {
		t.Fatal(err)
	}
	checkInput(t, h)
	return h
}

// checkInput checks what holds for every log: the counters add up, intervals are intervals, After points back.
func checkInput(t *testing.T, h *traces.History) {
	t.Helper()
	in := h.Inputs[len(h.Inputs)-1]
	if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected {
		t.Errorf("%d records are %d used, %d duplicates, %d irrelevant, %d rejected",
			in.Records, in.Used, in.Duplicates, in.Irrelevant, in.Rejected)
	}
	for i, op := range h.Operations {
		if op.Call > op.Return {
			t.Errorf("%s: the interval %v..%v runs backwards", op.ID, op.Call, op.Return)
		}
		if op.After >= i || op.After < -1 {
			t.Errorf("%s: operation %d comes after operation %d", op.ID, i, op.After)
		}
		if (op.Outcome == traces.Failed) != (op.Error != "") {
			t.Errorf("%s: outcome %d with error %q", op.ID, op.Outcome, op.Error)
		}
		if len(op.Sources) == 0 || op.Process == "" {
			t.Errorf("%s: no source or process", op.ID)
		}
	}
	for _, ob := range h.Observations {
		if ob.Earliest > ob.Latest || ob.Process == "" || len(ob.Sources) == 0 {
			t.Errorf("%s: %+v", ob.ID, ob)
		}
	}
}

var short = strings.NewReplacer("SecurityGroupIngress", "", "2026-08-28T", "", ".999999999Z", "+", "Z", "")

// operations prints a history's operations for comparison: id, process, call, group, rules, interval, result, order.
func operations(h *traces.History) []string {
	var all []string
	for _, op := range h.Operations {
		s := strings.TrimPrefix(op.ID, "c.log:") + " " + op.Process + " " + op.Op + " " + op.Group + op.TargetGroup
		for _, p := range op.Permissions {
			s += fmt.Sprintf(" %d-%d", p.FromPort, p.ToPort)
		}
		for _, target := range op.Targets {
			s += fmt.Sprintf(" %s:%d", target.ID, target.Port)
		}
		s += fmt.Sprintf(" %v..%v ", op.Call, op.Return)
		switch op.Outcome {
		case traces.Succeeded:
			s += "ok"
		case traces.Failed:
			s += op.Error
		default:
			s += "?"
		}
		if op.Unclear {
			s += " unclear"
		}
		if op.RequestID != "" {
			s += " req " + op.RequestID
		}
		if op.After >= 0 {
			s += " after " + strings.TrimPrefix(h.Operations[op.After].ID, "c.log:")
		}
		all = append(all, short.Replace(s))
	}
	return all
}

// observations prints a history's observations for comparison.
func observations(h *traces.History) []string {
	var all []string
	for _, ob := range h.Observations {
		s := strings.TrimPrefix(ob.ID, "c.log:") + " " + ob.Process + " " + string(ob.Kind)
		if ob.TGB != "" {
			s += " " + ob.TGB
		}
		s += fmt.Sprintf(" %v..%v", ob.Earliest, ob.Latest)
		if ob.Error != "" {
			s += " " + ob.Error
		}
		all = append(all, short.Replace(s))
	}
	return all
}

// compact makes one line of text that a test writes in several.
func compact(s string) string { return strings.Join(strings.Fields(s), " ") }
