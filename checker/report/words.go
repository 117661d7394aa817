package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"linearize.example/traces"
)

// maxString bounds, in bytes, what the forms for people show of one string of a capture. The JSON form has all of it.
const maxString = 4096

// clean makes a string of a capture safe to print: what is not printable (control characters, escape sequences,
// directional overrides, invisible characters, invalid UTF-8) becomes a Go escape, and what exceeds maxString is
// replaced by a remark on its length.
func clean(s string) string {
	if len(s) > maxString {
		n := maxString
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		return clean(s[:n]) + fmt.Sprintf("... (%d bytes more)", len(s)-n)
	}
	if strings.IndexFunc(s, isUnsafe) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isUnsafe(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func isUnsafe(r rune) bool { return !unicode.IsPrint(r) }

// cleanAll cleans every string.
func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}

// duration prints a length in seconds for people: "39 m 47 s", "10 h 45 m", "2.5 s", "150 ms". From a minute on it is
// rounded to seconds, below to three digits.
func duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds):
		return "unknown"
	case math.IsInf(seconds, 0) || math.Abs(seconds) > 1e10:
		return "without end"
	case seconds < 0:
		return "-" + duration(-seconds)
	case seconds == 0:
		return "0 s"
	}
	for _, u := range []struct {
		unit string
		size float64
		less float64
	}{{"ns", 1e-9, 1000}, {"µs", 1e-6, 1000}, {"ms", 1e-3, 1000}, {"s", 1, 60}} {
		if s := threeDigits(seconds / u.size); s < u.less {
			return strconv.FormatFloat(s, 'f', -1, 64) + " " + u.unit
		}
	}
	rest := int64(math.Round(seconds))
	var parts []string
	for _, u := range []struct {
		unit string
		size int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := rest / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.unit))
		}
		rest %= u.size
	}
	return strings.Join(parts, " ")
}

func threeDigits(x float64) float64 {
	prec := 2
	switch {
	case x >= 100:
		prec = 0
	case x >= 10:
		prec = 1
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'f', prec, 64), 64)
	return x
}

// day prints an instant's date, or nothing for an instant without one.
func day(i Instant) string {
	if i == traces.Beginning || i == traces.Forever {
		return ""
	}
	return i.Time().Format(time.DateOnly)
}

// clock prints an instant's time of day in UTC, with the digits that it has.
func clock(i Instant) string {
	switch i {
	case traces.Beginning:
		return "before the capture"
	case traces.Forever:
		return "after the capture"
	}
	return i.Time().Format("15:04:05.999999999")
}

// moment prints date and time.
func moment(i Instant) string {
	if d := day(i); d != "" {
		return d + " " + clock(i)
	}
	return clock(i)
}

// clockRange prints the time of day of a range, leaving out what its second bound has in common with the first:
// "09:56:01", "09:56:00–03", "≤ 09:56:03". Bounds are rounded outwards to a tenth of the range.
func clockRange(r Range) string {
	from, to := r.Earliest, r.Latest
	switch {
	case from == to:
		return clock(from)
	case from == traces.Beginning && to == traces.Forever:
		return "at any time"
	case from == traces.Beginning:
		return "≤ " + clock(to)
	case to == traces.Forever:
		return "≥ " + clock(from)
	}
	from, to = outwards(r)
	a, b := clock(from), clock(to)
	switch {
	case day(from) != day(to):
		return a + "–" + moment(to)
	case a[:6] == b[:6]:
		return a + "–" + b[6:]
	case a[:3] == b[:3]:
		return a + "–" + b[3:]
	}
	return a + "–" + b
}

// outwards rounds the bounds of a range outwards, to a tenth of its length or to seconds.
func outwards(r Range) (from, to Instant) {
	if !bounded(r.Earliest) || !bounded(r.Latest) {
		return r.Earliest, r.Latest
	}
	unit := Instant(time.Second)
	for unit > 1 && unit > (r.Latest-r.Earliest)/10 {
		unit /= 10
	}
	return floor(r.Earliest, unit), -floor(-r.Latest, unit)
}

func floor(i, unit Instant) Instant {
	n := i % unit
	if n < 0 {
		n += unit
	}
	return i - n
}

// momentRange prints date and time of a range.
func momentRange(r Range) string {
	for _, i := range []Instant{r.Earliest, r.Latest} {
		if d := day(i); d != "" {
			return d + " " + clockRange(r)
		}
	}
	return clockRange(r)
}

// lengths says how long a window was.
func lengths(w Window) string {
	s := duration(w.CertainSeconds)
	if possible := duration(w.PossibleSeconds); possible != s {
		if w.CertainSeconds == 0 {
			s = "up to " + possible
		} else {
			s += " for certain, " + possible + " at most"
		}
	}
	if w.End == nil {
		s += ", the capture ends first"
	}
	return s
}

// count prints a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// headline is the verdict in one line.
func headline(r *Report) string { return r.Verdict.String() + ": " + clean(r.Summary) }

// span says what of the capture concerns a group.
func span(g Group) string {
	s := count(g.Operations, "operation")
	if g.From != nil && g.To != nil {
		from, end := outwards(Range{*g.From, *g.To})
		to := clock(end)
		if day(from) != day(end) {
			to = moment(end)
		}
		s += ", " + moment(from) + " – " + to + " UTC"
	}
	return s
}

// verdictWord is a property's verdict with what qualifies it.
func verdictWord(p Property) string {
	if p.Vacuous {
		return p.Verdict.String() + " (vacuous)"
	}
	return p.Verdict.String()
}

// why collects what is to be said of a property besides its verdict.
func why(p Property) []string {
	var out []string
	if p.Reason != "" {
		out = append(out, clean(p.Reason))
	}
	if p.Hidden > 0 {
		out = append(out, count(p.Hidden, "window")+" shorter than --min-window not listed")
	}
	if p.BoundSeconds != nil {
		s := "bound " + duration(*p.BoundSeconds)
		if p.WorstSeconds != nil {
			s += ", worst " + duration(*p.WorstSeconds)
		}
		out = append(out, s)
	}
	if st := p.Statistics; st != nil && st.Count > 0 {
		s := count(st.Count, "repair")
		if st.Censored > 0 {
			s += fmt.Sprintf(" (%d cut off by the capture's end)", st.Censored)
		}
		out = append(out, s+": "+quantiles(st.Quantiles))
	}
	if pr := p.Promise; pr != nil {
		s := fmt.Sprintf("%s can promise %s: %s", clean(pr.Release), duration(pr.BoundSeconds), pr.Verdict)
		if pr.Text != "" {
			s += "; " + clean(pr.Text)
		}
		out = append(out, s)
	}
	return out
}

func quantiles(q Quantiles) string {
	return fmt.Sprintf("median %s, p90 %s, p99 %s, max %s",
		duration(q.Median), duration(q.P90), duration(q.P99), duration(q.Max))
}

// linearityVerdict maps Porcupine's answer to a verdict, for its colour.
func linearityVerdict(l Linearity) Verdict {
	switch {
	case l.Result == "linearizable":
		return Holds
	case l.Result == "not-linearizable" && onlyOldReads(l):
		return Possible
	case l.Result == "not-linearizable":
		return Violated
	}
	return Unknown
}

// onlyOldReads reports whether nothing but the age of describes stands against linearity. AWS documents that reads may
// be old, so this is worth a note, and no failure.
func onlyOldReads(l Linearity) bool { return l.Mutations == "linearizable" && l.StaleReads > 0 }

// whyLinearity collects what is to be said of linearity.
func whyLinearity(l Linearity) []string {
	var out []string
	if l.Detail != "" {
		out = append(out, clean(l.Detail))
	}
	if l.Mutations != "" && l.Mutations != l.Result {
		out = append(out, "the mutations alone: "+clean(l.Mutations))
	}
	if l.Reads > 0 {
		s := fmt.Sprintf("%s, %d of them old", count(l.Reads, "read"), l.StaleReads)
		if l.StaleReads > 0 {
			s += ", read lag at most " + duration(l.MaxReadLagSeconds)
		}
		out = append(out, s)
		if l.Quantiles != nil && l.StaleReads > 0 {
			out = append(out, "read lag over all reads: "+quantiles(*l.Quantiles))
		}
	}
	return out
}

// call names an operation: what it did, its record and its row in the timeline.
func call(ref *Ref, rows map[string]int) string {
	s := clean(ref.Summary)
	switch n, ok := rows[ref.ID]; {
	case ok && len(ref.ID) > shortID:
		s += fmt.Sprintf(" (row %d, %s)", n, clean(ref.ID))
	case ok:
		s += fmt.Sprintf(" (row %d)", n)
	case ref.ID != "":
		s += " (" + clean(ref.ID) + ")"
	}
	if ref.Process != "" {
		s += " by " + clean(ref.Process)
	}
	return s
}

// shortID is the length up to which an operation's id is shown beside its summary.
const shortID = 20

// rowNumbers numbers a timeline's calls from 1, by their ids.
func rowNumbers(g Group) map[string]int {
	rows := map[string]int{}
	for i, row := range g.Timeline {
		if row.ID != "" {
			if _, ok := rows[row.ID]; !ok {
				rows[row.ID] = i + 1
			}
		}
	}
	return rows
}

// commonSource is the source, " from sg-0ddd", that all rules of a timeline have, or empty where they differ. The
// timeline leaves it out.
func commonSource(rows []Row) string {
	common := ""
	for _, row := range rows {
		for _, rule := range row.Rules {
			i := strings.LastIndex(rule, " from ")
			if i < 0 || common != "" && rule[i:] != common {
				return ""
			}
			common = rule[i:]
		}
	}
	return common
}

// rulesAfter prints the rules after a row, without the source that all have.
func rulesAfter(row Row, common string) string {
	s, others := "none", strings.Join(cleanAll(row.Possible), " | ")
	switch {
	case row.Rules == nil && others != "":
		s, others = "one of "+others, ""
	case row.Rules == nil:
		s = "unknown"
	case len(row.Rules) > 0:
		s = strings.Join(cleanAll(row.Rules), "; ")
	}
	if others != "" {
		s += " (or, in another order: " + others + ")"
	}
	if common != "" {
		s = strings.ReplaceAll(s, clean(common), "")
	}
	return s
}

// spans are the times in which some window may have been open, ascending and disjoint.
func spans(g Group) []Range {
	var all []Range
	for _, p := range g.Properties {
		for _, w := range p.Windows {
			from, to := windowSpan(w)
			all = append(all, Range{from, to})
		}
	}
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Earliest, b.Earliest) })
	var out []Range
	for _, r := range all {
		if n := len(out); n > 0 && r.Earliest <= out[n-1].Latest {
			out[n-1].Latest = max(out[n-1].Latest, r.Latest)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// inside reports whether a row lies, at least in part, in one of the spans, or is marked.
func inside(row Row, spans []Range) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].Latest >= row.At.Earliest })
	return len(row.Marks) > 0 || i < len(spans) && spans[i].Earliest <= row.At.Latest
}

// resultOf prints a row's result, without the source that all rules have.
func resultOf(row Row, common string) string {
	s := clean(row.Result)
	if common != "" {
		s = strings.ReplaceAll(s, clean(common), "")
	}
	return s
}

// succeeded reports whether a row's result is no error.
func succeeded(row Row) bool { return row.Result == "ok" || strings.HasPrefix(row.Result, "saw ") }

// newMarks are a row's marks that the rows before have not shown, neither as they are nor as the beginning of a longer one.
func newMarks(row Row, shown *[]string) []string {
	var out []string
	for _, m := range row.Marks {
		if !slices.ContainsFunc(*shown, func(s string) bool { return strings.HasPrefix(s, m) }) {
			out = append(out, clean(m))
			*shown = append(*shown, m)
		}
	}
	return out
}

// windowTitle names a window in its property's list.
func windowTitle(p Property, w Window) string {
	s := p.Name + " " + w.Verdict.String()
	if w.Subject != "" {
		s += " for " + clean(w.Subject)
	}
	return s
}
