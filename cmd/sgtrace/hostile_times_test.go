//go:build unix

package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// One span with impossible times loses only its own duration, in every report, and is reported.
// Percentiles and sums are those of the other spans.
func TestTimesThatCannotBe(t *testing.T) {
	e := newEvidence(t)
	text := e.read(t, e.otel)
	for _, test := range []struct{ span, field, digits, said string }{
		{"http_request", "startTimeUnixNano", "11", `span "http_request" lasts 69`},
		{"http_request", "endTimeUnixNano", "19", `span "http_request" lasts 23`},
		{"http_request", "endTimeUnixNano", "11", `span "http_request" ends `},
		{"decode_loop", "startTimeUnixNano", "11", `span "decode_loop" lasts 69`},
		{"prefill_forward", "endTimeUnixNano", "19", `span "prefill_forward" lasts 23`},
	} {
		at := strings.Index(text, `"name":"`+test.span+`"`)
		at += strings.Index(text[at:], `"`+test.field+`":"1`) + len(test.field) + 4
		damaged := text[:at] + test.digits + text[at+2:]
		if err := os.WriteFile(filepath.Join(e.dir, "damaged.jsonl"), []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--by-stage"}, {"--latency"}, {"--by-request"}, {"--by", "role"}} {
			args = append(append([]string{"report", "--format", "csv"}, args...), "damaged.jsonl")
			r := child{dir: e.dir}.run(t, args...)
			r.check(t, exitPartial, "damaged.jsonl:", test.said, "[time-impossible]")
			checkShorter(t, r.out, 3600)
		}
		for _, args := range [][]string{{"report"}, {"report", "--timeline"}, {"report", "--by-rank"}, {"report", "-o", "out.html"}, {"requests"}, {"diff", e.otel}} {
			child{dir: e.dir}.run(t, append(args, "damaged.jsonl")...).check(t, exitPartial, "[time-impossible]")
		}
		child{dir: e.dir}.run(t, "merge", "damaged.jsonl", "-o", "out.pftrace").check(t, exitPartial, "damaged.jsonl:")
	}
}

// checkShorter fails the test if a duration in a table (columns ending in _ns) is at least that
// many seconds.
func checkShorter(t *testing.T, table string, seconds int64) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%v in %s", err, table)
	}
	durations := 0
	for k, name := range rows[0] {
		if !strings.HasSuffix(name, "_ns") {
			continue
		}
		for _, row := range rows[1:] {
			if v, err := strconv.ParseInt(row[k], 10, 64); err == nil && v/1e9 >= seconds && v/1e9 < 1e9 { // larger values are times
				t.Errorf("%s is %d: %v", name, v, row)
			} else if err == nil {
				durations++
			}
		}
	}
	if durations == 0 {
		t.Errorf("no durations in %v", rows[0])
	}
}
