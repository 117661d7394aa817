package cloudtrail

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const consoleCSV = "the console's CSV has no requestParameters, so that it does not say which rules were changed; " +
	"download the event history as JSON"

// csvHeader reports whether the input is a table: its first line has no bracket and names columns of events.
func (rd *reading) csvHeader() bool {
	head := rd.s.ahead(16 << 10)
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{'\n'})
	lower := bytes.ToLower(line)
	if bytes.ContainsAny(line, "{[") || !bytes.Contains(line, []byte{','}) && !bytes.Contains(line, []byte{'\t'}) {
		return bytes.Equal(bytes.Trim(lower, "\"\r "), []byte("_raw")) || bytes.Equal(bytes.Trim(lower, "\"\r "), []byte("@message"))
	}
	for _, column := range []string{"eventname", "event name", "_raw", "@message", "cloudtrailevent", "requestparameters"} {
		if bytes.Contains(lower, []byte(column)) {
			return true
		}
	}
	return false
}

// csv reads a table of events: Athena's and Lake's results, exports of Splunk and of Logs Insights. Cells hold text, JSON
// text, or printed maps.
func (rd *reading) csv() error {
	limited := &recordLimit{left: MaxRecord, src: io.MultiReader(strings.NewReader(string(rd.s.buf[rd.s.pos:])), rd.s.src)}
	table := csv.NewReader(limited)
	table.FieldsPerRecord = -1
	table.LazyQuotes = true
	table.ReuseRecord = true
	header, _, _ := strings.Cut(string(rd.s.buf[rd.s.pos:]), "\n")
	if strings.Count(header, "\t") > strings.Count(header, ",") {
		table.Comma = '\t'
	}
	columns, err := table.Read()
	if errors.Is(err, errTooLong) {
		rd.reject("line 1", fmt.Sprintf("the names of the columns are longer than %d MiB", MaxRecord>>20))
		return nil
	}
	if err != nil {
		return rd.end(err)
	}
	columns = append([]string(nil), columns...)
	known := map[string]bool{}
	for i, c := range columns {
		columns[i] = strings.TrimSpace(c)
		known[strings.ToLower(columns[i])] = true
	}
	if known["event name"] {
		return fmt.Errorf("%w: %s", ErrNoEvents, consoleCSV)
	}
	for {
		limited.left = MaxRecord
		cells, err := table.Read()
		if err != nil {
			if errors.Is(err, errTooLong) {
				rd.reject("row "+strconv.Itoa(rd.in.Records+1), fmt.Sprintf("the row is longer than %d MiB", MaxRecord>>20))
				rd.note("truncated-capture", "the table could not be read to its end: a row is too long")
				return nil
			}
			var syntax *csv.ParseError
			if errors.As(err, &syntax) {
				rd.reject("line "+strconv.Itoa(syntax.StartLine), syntax.Err.Error())
				continue
			}
			return rd.end(err)
		}
		if rd.recognized && !mayMatterRow(cells) {
			rd.in.Records++
			rd.in.Irrelevant++
			continue
		}
		line, _ := table.FieldPos(0)
		row := make(map[string]any, len(columns))
		for i, cell := range cells {
			if i < len(columns) {
				row[columns[i]] = strings.Clone(cell)
			}
		}
		rd.position, rd.raw = "line "+strconv.Itoa(line), groupStem
		rd.use(row, "cloudtrail/athena", 0)
	}
}

// recordLimit fails when more bytes are read than one record may have.
type recordLimit struct {
	src  io.Reader
	left int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLong
	}
	n, err := l.src.Read(p)
	l.left -= n
	return n, err
}

// mayMatterRow is mayMatter for the cells of a table.
func mayMatterRow(cells []string) bool {
	for _, cell := range cells {
		if strings.Contains(cell, string(groupStem)) || strings.Contains(cell, string(targetStem)) || strings.Contains(cell, string(escapeStem)) {
			return true
		}
	}
	return false
}
