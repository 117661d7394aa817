package traces_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// parts reads the files of a recording in turn.
func parts(t *testing.T, texts ...string) *traces.History {
	t.Helper()
	h := &traces.History{}
	for i, text := range texts {
		h.Inputs = append(h.Inputs, traces.Input{Path: fmt.Sprintf("history-%06d.ndjson", i+1), Format: traces.FormatHistory})
		if err := traces.ReadHistory(strings.NewReader(text), h, i); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func part(n int, records ...string) string {
	return fmt.Sprintf(`{"history":"v1","recording":"r","part":"%d"}`, n) + "\n" + strings.Join(records, "\n") + "\n"
}

// record is a line of an operation on sg-1 that begins at second call, and returns at second ret where that is not 0.
func record(seq, call, ret int, more string) string {
	s := fmt.Sprintf(`{"seq":%d,"op":"AuthorizeSecurityGroupIngress","groupId":"sg-1","call":"2026-08-28T10:00:%02dZ"`, seq, call)
	if ret > 0 {
		s += fmt.Sprintf(`,"return":"2026-08-28T10:00:%02dZ"`, ret)
	}
	if more != "" {
		s += "," + more
	}
	return s + "}"
}

// calls prints operations: "seq 1 1s..2s ok (line 3 of 1)".
func calls(h *traces.History) []string {
	start := traces.At(time.Date(2026, 8, 28, 10, 0, 0, 0, time.UTC))
	var all []string
	for _, op := range h.Operations {
		end := "…"
		if op.Return != traces.Forever {
			end = fmt.Sprint(op.Return.Sub(start))
		}
		s := fmt.Sprintf("%s %v..%s %s", op.ID, op.Call.Sub(start), end, map[traces.Outcome]string{traces.Pending: "pending", traces.Succeeded: "ok", traces.Failed: op.Error}[op.Outcome])
		if op.After >= 0 {
			s += " after " + h.Operations[op.After].ID
		}
		all = append(all, s+fmt.Sprintf(" (%s of %d)", op.Sources[0].Position, op.Sources[0].Input+1))
	}
	return all
}

type counts struct{ records, used, duplicates, rejected int }

func inputCounts(h *traces.History) []counts {
	var all []counts
	for _, in := range h.Inputs {
		all = append(all, counts{in.Records, in.Used, in.Duplicates, in.Rejected})
	}
	return all
}

// TestCompletion: a record without an answer and the whole record of the same number are one operation, in the order of calls.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  []string
		want   []string
		counts []counts
	}{
		{"one file", []string{header + record(1, 1, 0, "") + "\n" + record(2, 2, 0, "") + "\n" + record(2, 2, 3, "") + "\n" + record(1, 1, 4, `"error":"InvalidPermission.Duplicate"`) + "\n"},
			[]string{"seq 1 1s..4s InvalidPermission.Duplicate (line 5 of 1)", "seq 2 2s..3s ok (line 4 of 1)"}, []counts{{2, 2, 0, 0}}},
		{"no answer came", []string{header + record(1, 1, 0, "") + "\n" + record(1, 1, 0, `"requestId":"a"`) + "\n"},
			[]string{"seq 1 1s..… pending (line 3 of 1)"}, []counts{{1, 1, 0, 0}}},
		{"another call of the same number", []string{header + record(1, 1, 0, `"requestId":"a"`) + "\n" + record(1, 1, 3, `"requestId":"b"`) + "\n" +
			strings.Replace(record(1, 1, 4, ""), "sg-1", "sg-2", 1) + "\n" + strings.Replace(record(1, 1, 5, ""), "Auth", "XX", 1) + "\n"},
			[]string{"seq 1 1s..3s ok (line 3 of 1)", "seq 1 1s..4s ok (line 4 of 1)", "seq 1 1s..5s ok (line 5 of 1)", "seq 1 1s..… pending (line 2 of 1)"}, []counts{{4, 4, 0, 0}}},
		{"the answer tells the group", []string{header + strings.Replace(record(1, 1, 0, ""), "sg-1", "web", 1) + "\n" + strings.Replace(record(2, 1, 0, ""), `"groupId":"sg-1",`, "", 1) + "\n" +
			record(1, 1, 3, "") + "\n" + record(2, 1, 3, "") + "\n"},
			[]string{"seq 1 1s..3s ok (line 4 of 1)", "seq 2 1s..3s ok (line 5 of 1)"}, []counts{{2, 2, 0, 0}}},
		{"a number twice, both whole", []string{header + record(1, 1, 2, "") + "\n" + record(1, 1, 2, "") + "\n"},
			[]string{"seq 1 1s..2s ok (line 2 of 1)", "seq 1 1s..2s ok (line 3 of 1)"}, []counts{{2, 2, 0, 0}}},
		{"two files", []string{part(1, record(1, 1, 0, ""), record(2, 2, 0, "")), part(2, record(1, 1, 4, ""), record(3, 4, 5, `"after":1`))},
			[]string{"seq 1 1s..4s ok (line 2 of 2)", "seq 2 2s..… pending (line 3 of 1)", "seq 3 4s..5s ok after seq 1 (line 3 of 2)"}, []counts{{1, 1, 0, 0}, {2, 2, 0, 0}}},
		{"over one file", []string{part(1, record(1, 1, 0, "")), part(2), part(3, record(1, 1, 4, ""))}, []string{"seq 1 1s..4s ok (line 2 of 3)"}, []counts{{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 0, 0}}},
		{"two files that were concatenated", []string{part(1, record(1, 1, 0, ""), record(2, 2, 0, "")) + part(2, record(1, 1, 4, ""), record(3, 4, 5, `"after":1`))},
			[]string{"seq 1 1s..4s ok (line 5 of 1)", "seq 2 2s..… pending (line 3 of 1)", "seq 3 4s..5s ok after seq 1 (line 6 of 1)"}, []counts{{3, 3, 0, 0}}},
		{"in the wrong order", []string{part(2, record(1, 1, 4, ""), record(3, 5, 6, "")), part(1, record(1, 1, 0, ""), record(2, 2, 0, ""))},
			[]string{"seq 1 1s..4s ok (line 2 of 1)", "seq 2 2s..… pending (line 3 of 2)", "seq 3 5s..6s ok (line 3 of 1)"}, []counts{{2, 2, 0, 0}, {1, 1, 0, 0}}},
		{"a part given twice", []string{part(1, record(1, 1, 0, ""), record(2, 1, 2, "")), part(2, record(1, 1, 4, "")), part(1, record(1, 1, 0, ""), record(2, 1, 2, ""))},
			[]string{"seq 2 1s..2s ok (line 3 of 1)", "seq 1 1s..4s ok (line 2 of 2)"}, []counts{{1, 1, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}}},
		{"two recordings", []string{part(1, record(1, 1, 0, "")), strings.Replace(part(2, record(1, 1, 4, "")), `"r"`, `"other"`, 1)},
			[]string{"seq 1 1s..4s ok (line 2 of 2)", "seq 1 1s..… pending (line 2 of 1)"}, []counts{{1, 1, 0, 0}, {1, 1, 0, 0}}},
		{"two histories that name no recording", []string{header + record(1, 1, 0, "") + "\n", header + record(1, 1, 4, `"after":1`) + "\n"},
			[]string{"seq 1 1s..4s ok (line 2 of 2)", "seq 1 1s..… pending (line 2 of 1)"}, []counts{{1, 1, 0, 0}, {1, 1, 0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := parts(t, c.files...)
			before := slices.Clone(h.Operations)
			merged := traces.Merge(h, time.Second)
			if diff := cmp.Diff(c.want, calls(merged)); diff != "" {
				t.Errorf("operations: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.counts, inputCounts(merged), cmp.AllowUnexported(counts{})); diff != "" {
				t.Errorf("counts: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(before, h.Operations); diff != "" {
				t.Errorf("what was read was edited in place: %s", diff)
			}
		})
	}
}

// TestPartsAreShared: the parts of a recording that were read in order are one source, whose operations need not be copied.
func TestPartsAreShared(t *testing.T) {
	h := parts(t, part(1, record(1, 1, 0, ""), record(2, 2, 3, "")), part(2, record(1, 1, 4, ""), record(3, 5, 6, "")))
	if merged := traces.Merge(h, time.Second); &merged.Operations[0] != &h.Operations[0] {
		t.Error("the operations were copied")
	}
}

// TestObservationFields: what an observation has besides is kept.
func TestObservationFields(t *testing.T) {
	const line = `{"observation":"cache-hit","id":"o","process":"lbc-1","groupId":"sg-1","at":"2026-08-28T10:00:00Z","ageSeconds":12.5,"op":"x","requestId":null,"call":{"a":[1]}}`
	h := read(t, header+line+"\n")
	want := []traces.Field{{Name: "ageSeconds", Value: "12.5"}, {Name: "op", Value: `"x"`}, {Name: "call", Value: `"2026-08-28T10:00:01Z"`}}
	if h.Inputs[0].Rejected != 1 {
		t.Errorf("a call that is no time: %+v", h.Inputs[0])
	}
	h = read(t, header+strings.Replace(line, `{"a":[1]}`, `"2026-08-28T10:00:01Z"`, 1)+"\n")
	if diff := cmp.Diff(want, h.Observations[0].Extra); diff != "" {
		t.Error(diff)
	}
	text := write(t, h)
	if again := read(t, text); cmp.Diff(h, again, sameRecords) != "" {
		t.Error(text)
	}
	if ob := h.Observations[0]; ob.Kind != traces.CacheHit || ob.Group != "sg-1" {
		t.Errorf("%+v", ob)
	}
}

// TestMergeByRequestID: the records that a client and an endpoint have of one call are one operation.
func TestMergeByRequestID(t *testing.T) {
	request := func(id string) string { return `"requestId":"` + id + `"` }
	describe := func(seq, call, ret int, group, id string) string {
		return strings.NewReplacer("AuthorizeSecurityGroupIngress", "DescribeSecurityGroups", "sg-1", group).Replace(record(seq, call, ret, request(id)))
	}
	file := func(name string, records ...string) string {
		return `{"history":"v1","recording":"` + name + `","part":"1"}` + "\n" + strings.Join(records, "\n") + "\n"
	}
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"the intersection of both", []string{file("client", record(1, 1, 5, request("a"))), file("endpoint", record(7, 2, 4, request("a")))}, []string{"seq 1 2s..4s ok (line 2 of 1)"}},
		{"clocks apart", []string{file("client", record(1, 1, 2, request("a"))), file("endpoint", record(7, 8, 9, request("a")))}, []string{"seq 1 1s..2s ok (line 2 of 1)"}},
		{"another request", []string{file("client", record(1, 1, 5, request("a"))), file("endpoint", record(7, 2, 4, request("b")))},
			[]string{"seq 1 1s..5s ok (line 2 of 1)", "seq 7 2s..4s ok (line 2 of 2)"}},
		{"the client saw no answer", []string{file("client", record(1, 1, 0, "")), file("endpoint", record(7, 2, 4, request("b")))},
			[]string{"seq 1 1s..… pending (line 2 of 1)", "seq 7 2s..4s ok (line 2 of 2)"}},
		{"a describe of two groups", []string{file("client", describe(1, 1, 5, "sg-1", "a"), describe(2, 1, 5, "sg-2", "a")), file("endpoint", describe(7, 2, 3, "sg-2", "a"), describe(8, 2, 4, "sg-1", "a"))},
			[]string{"seq 2 2s..3s ok (line 3 of 1)", "seq 1 2s..4s ok (line 2 of 1)"}},
		{"one recording never", []string{file("client", describe(1, 1, 5, "sg-1", "a"), describe(2, 1, 5, "sg-1", "a")), strings.Replace(file("client", describe(3, 1, 5, "sg-1", "a")), `"1"`, `"2"`, 1)},
			[]string{"seq 1 1s..5s ok (line 2 of 1)", "seq 2 1s..5s ok (line 3 of 1)", "seq 3 1s..5s ok (line 2 of 2)"}},
		{"three observers", []string{file("client", record(1, 1, 5, request("a"))), file("proxy", record(3, 2, 5, request("a"))), file("endpoint", record(7, 1, 4, request("a")))},
			[]string{"seq 1 2s..4s ok (line 2 of 1)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, calls(traces.Merge(parts(t, c.files...), time.Second))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestMergeAttempts: of the attempts of one call, CloudTrail's record is of the one that was answered.
func TestMergeAttempts(t *testing.T) {
	timedOut := func(op *traces.Operation) { op.Outcome, op.Return = traces.Pending, traces.Forever }
	answeredAs := func(id string) func(*traces.Operation) {
		return func(op *traces.Operation) { op.RequestID = id }
	}
	for _, c := range []struct {
		name    string
		records []seen
		want    []string
	}{
		{"after a time-out", []seen{{history, "line 1", 1, 2, timedOut}, {history, "line 2", 2, 3, answeredAs("r-e")}, {trail, "record 1", 0, 4, event("e")}},
			[]string{"0 lbc-1 1s..2065405h47m16.854775807s ? 1 sources", "1 lbc-1 2s..3s ok 2 sources"}},
		{"without identifiers", []seen{{history, "line 1", 1, 2, timedOut}, {history, "line 2", 2, 3, nil}, {log, "line 1", 1, 3, nil}},
			[]string{"0 lbc-1 1s..2065405h47m16.854775807s ? 1 sources", "1 lbc-1 2s..3s ok 2 sources"}},
		{"never sent at first", []seen{{history, "line 1", 1, 2, fails("NotSent")}, {history, "line 2", 2, 3, nil}, {trail, "record 1", 0, 4, event("e")}},
			[]string{"0 lbc-1 1s..2s NotSent 1 sources", "1 lbc-1 2s..3s ok 2 sources"}},
		{"both arrived", []seen{{history, "line 1", 1, 2, timedOut}, {history, "line 2", 2, 3, fails("InvalidPermission.Duplicate")}, {trail, "record 1", 0, 4, event("e")},
			{trail, "record 2", 0, 4, func(op *traces.Operation) { event("f")(op); fails("InvalidPermission.Duplicate")(op) }}},
			[]string{"0 lbc-1 1s..4s ok 2 sources", "1 lbc-1 2s..3s InvalidPermission.Duplicate 2 sources"}},
		{"by its id, though another fits better", []seen{{history, "line 1", 1, 2, answeredAs("r-f")}, {history, "line 2", 2, 3, answeredAs("r-e")}, {trail, "record 1", 1, 3, event("e")}, {trail, "record 2", 1, 3, event("f")}},
			[]string{"0 lbc-1 1s..2s ok 2 sources", "1 lbc-1 2s..3s ok 2 sources"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(merged(t, c.records...))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
