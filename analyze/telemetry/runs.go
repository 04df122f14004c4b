package telemetry

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
)

// served returns the requests per second that a run finished.
func served(r *series.Run) float64 { return float64(r.Completed) / r.Duration }

// Runs has a row for each run of a load generator.
func (m *Metrics) Runs() *table.Table {
	ms := func(s float64) int64 {
		if math.IsNaN(s) || s < 0 || s > 1e9 {
			return -1
		}
		return int64(math.Round(s * 1e9))
	}
	type run = series.Run
	fields := []table.Field[run]{
		table.TextColumn("input", "input file", func(r *run) string { return m.Set.Sources[r.Source].Name }),
		table.CountColumn("line", "line in the file", func(r *run) int64 { return int64(r.Line) }),
		table.TextColumn("backend", "serving backend, as the client names it", func(r *run) string { return r.Backend }),
		table.TextColumn("dataset", "dataset of the prompts", func(r *run) string { return r.Dataset }),
		table.NumberColumn("offered", "offered load in requests per second; empty if all were sent at once or the rate is unknown", func(r *run) float64 {
			if math.IsInf(r.Rate, 0) {
				return math.NaN()
			}
			return r.Rate
		}),
		table.CountColumn("at_once", "concurrency limit; empty if unlimited", func(r *run) int64 {
			if r.Concurrency == 0 {
				return -1
			}
			return int64(r.Concurrency)
		}),
		table.CountColumn("completed", "completed requests", func(r *run) int64 { return int64(r.Completed) }),
		table.CountColumn("failed", "failed requests; empty if there were none or the tool did not report them", func(r *run) int64 { return cmp.Or(int64(r.Failed), -1) }),
		table.NumberColumn("served", "completed requests per second, until the last one completed", served),
		table.NumberColumn("input_rate", "prompt tokens per second", func(r *run) float64 { return r.Input / r.Duration }),
		table.NumberColumn("output_rate", "output tokens per second", func(r *run) float64 { return r.Output / r.Duration }),
	}
	for _, x := range []struct {
		name string
		of   func(*run) *series.Spread
	}{{"ttft", func(r *run) *series.Spread { return &r.TTFT }}, {"itl", func(r *run) *series.Spread { return &r.ITL }},
		{"tpot", func(r *run) *series.Spread { return &r.TPOT }}, {"e2e", func(r *run) *series.Spread { return &r.E2E }}} {
		fields = append(fields,
			table.NsColumn(x.name+"_p50", "as reported by the client", func(r *run) int64 { return ms(x.of(r).Median) }),
			table.NsColumn(x.name+"_p99", "as reported by the client", func(r *run) int64 { return ms(x.of(r).P99) }),
			table.NsColumn(x.name+"_mean", "as reported by the client", func(r *run) int64 { return ms(x.of(r).Mean) }).InDetail(),
			table.NsColumn(x.name+"_p90", "as reported by the client", func(r *run) int64 { return ms(x.of(r).P90) }).InDetail())
	}
	return table.New("sgtrace.report.bench/v1", "Runs of load generators", m.Set.Runs, fields).Stay("offered", "served", "ttft_p50", "itl_p50").Leave("line", "input", "tpot_p50", "tpot_p99", "input_rate")
}

// RunWords says in one line what load generators measured; "" without runs. It compares the lowest and the highest
// rate, because an offered rate above what is served cannot last.
func (m *Metrics) RunWords() string {
	runs := m.Set.Runs
	if len(runs) == 0 {
		return ""
	}
	text := words.Counted(len(runs), "run")
	one := func(r *series.Run) string {
		out := fmt.Sprintf("%s requests/s served", words.ThreeDigits(served(r)))
		if !math.IsInf(r.Rate, 0) && !math.IsNaN(r.Rate) {
			out = fmt.Sprintf("%s of %s requests/s served", words.ThreeDigits(served(r)), words.ThreeDigits(r.Rate))
		}
		if r.Failed > 0 {
			out += ", " + words.Thousands(int64(r.Failed)) + " failed"
		}
		if !math.IsNaN(r.TTFT.Median) {
			out += ", TTFT p50 " + words.Nearly(int64(r.TTFT.Median*1e9))
		}
		return out
	}
	// The runs with the highest and the lowest rate of the same kind; unknown rates sort below all.
	most := slices.MaxFunc(runs, func(a, b series.Run) int { return cmp.Compare(a.Rate, b.Rate) })
	least := most
	for _, r := range runs {
		if r.Backend == most.Backend && r.Dataset == most.Dataset && cmp.Compare(r.Rate, least.Rate) < 0 {
			least = r
		}
	}
	text += ": " + one(&most)
	if cmp.Compare(least.Rate, most.Rate) < 0 {
		text += "; " + one(&least)
	}
	return text
}

// ofTheRun is the share of a run's duration from which the median TTFT shows that it never reached a steady state. If
// servers keep up, requests don't wait longer in a longer run.
const ofTheRun = 0.1

// Overloads finds runs in which more load was offered than served.
func Overloads(set *series.Set) (out []finding.Finding, check finding.Check) {
	check = finding.Check{What: "runs of load generators that offer more than is served", Of: "run", N: len(set.Runs), Needed: 1}
	if len(set.Runs) == 0 {
		check.Reason = "no input is of a load generator"
	}
	all := 0.0
	for i := range set.Runs {
		all += max(0, set.Runs[i].Duration)
	}
	for i := range set.Runs {
		r := &set.Runs[i]
		if math.IsInf(r.Rate, 0) || !(r.Rate > served(r)) || !(r.TTFT.Median > ofTheRun*r.Duration) {
			continue
		}
		f := finding.Finding{At: place.Device(fmt.Sprintf("%s %s at %g requests/s", r.Backend, r.Dataset, r.Rate)), Subkind: fmt.Sprintf("offered %g", r.Rate), CostBasis: finding.ServerTime, Confidence: finding.Likely,
			Cost:   r.Duration * (1 - served(r)/r.Rate) / all, // for that long, they catch up with what was offered in the rest of the time
			Metric: finding.Metric{Name: "ttft p50", Unit: table.Duration, Before: math.NaN(), After: r.TTFT.Median * 1e9}}
		f.Text = fmt.Sprintf("of %s requests/s offered, the servers complete only %s: half of the requests wait more than %s for their first token, in a run of %s", words.ThreeDigits(r.Rate), words.ThreeDigits(served(r)),
			words.Nearly(int64(r.TTFT.Median*1e9)), words.Nearly(int64(r.Duration*1e9)))
		f.Evidence = append(f.Evidence, finding.Sentence("%s:%d, %s %s", set.Sources[r.Source].Name, r.Line, r.Backend, r.Dataset))
		for k := range set.Runs {
			if o := &set.Runs[k]; o.Backend == r.Backend && o.Dataset == r.Dataset && o.Rate < r.Rate && !(o.TTFT.Median > ofTheRun*o.Duration) {
				f.Evidence = append(f.Evidence, finding.Sentence("of %s requests/s offered, they complete %s, and that wait is %s", words.ThreeDigits(o.Rate), words.ThreeDigits(served(o)), words.Nearly(int64(o.TTFT.Median*1e9))))
			}
		}
		out = append(out, f)
	}
	return out, check
}
