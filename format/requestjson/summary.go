package requestjson

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
)

// Summary is bench_serving's printed summary of a run, as copied from a terminal: a line for each number, between a
// title and a line of equals signs.
//
// # What is odd
//
//   - SGLang writes "Traffic request rate", vLLM "Request rate configured (RPS)", and omits it if it is infinite.
//   - A limit that is not set reads "not set".
//   - It has no times of day.
var Summary = &format.Format{
	Name:   "client summary",
	Noun:   "summary of a load generator",
	Doc:    "what bench_serving of SGLang and vLLM prints of a run",
	For:    "'sgtrace report'",
	Sniff:  func(head []byte) bool { return has(head, summaryTitle, "\n"+summaryDuration+":") },
	Index:  indexSummary,
	Series: true,
	Text:   true,
}

// summaryTitle is the title of a summary. Without a duration, a summary does not show the request rate.
const summaryTitle, summaryDuration = "= Serving Benchmark Result =", "Benchmark duration (s)"

// summaryNames maps names in a summary to keys of results in JSON.
var summaryNames = map[string]string{
	"Backend": "backend", "Traffic request rate": "request_rate", "Request rate configured (RPS)": "request_rate", "Max request concurrency": "max_concurrency", "Maximum request concurrency": "max_concurrency",
	"Successful requests": "completed", "Failed requests": "failed", summaryDuration: "duration", "Total input tokens": "total_input_tokens", "Total generated tokens": "total_output_tokens",
}

// indexSummary reads a file.
func indexSummary(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	f := opt.Series.Fill(in.Name, "bench_serving summary")
	src := f.Source()
	var run series.Run
	open, counted := false, false
	end := func() {
		if open && counted && run.Duration > 0 {
			f.Set.Runs = append(f.Set.Runs, run)
		}
		open, counted = false, false
	}
	src.Bytes, err = logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		b = bytes.TrimSpace(b)
		name, value, ok := strings.Cut(string(b), ":")
		switch {
		case bytes.Contains(b, []byte(summaryTitle)):
			end()
			run, open = newRun(f.Set, int(n)), true
		case open && len(b) > 0 && len(bytes.Trim(b, "=")) == 0:
			end()
		case open && ok:
			src.Read++
			counted = counted || summaryKey(name) == "completed"
			set(&run, summaryKey(name), strings.TrimSpace(value))
		}
		src.Lines = int(n)
	})
	end()
	return &format.Source{}, err
}

// summaryKey returns the key of a number in JSON results, "mean_ttft_ms" for "Mean TTFT (ms)"; "" if it is not needed.
func summaryKey(name string) string {
	if key := summaryNames[name]; key != "" {
		return key
	}
	which, what, _ := strings.Cut(strings.ToLower(name), " ")
	what, ms := strings.CutSuffix(what, " (ms)")
	if !ms {
		return ""
	}
	return which + "_" + strings.ReplaceAll(what, " ", "_") + "_ms"
}

// set sets a value of a run from a summary.
func set(x *series.Run, key, value string) {
	if key == "backend" {
		const longest = 64
		x.Backend = value[:min(len(value), longest)]
		return
	}
	if v, err := strconv.ParseFloat(value, 64); err == nil {
		setNumber(x, key, v)
	}
}
