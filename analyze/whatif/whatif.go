package whatif

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A Run is a recorded run that can answer what-if questions.
type Run struct {
	*replay.Run
	// Refused says why it cannot; "" if it can.
	Refused string
	// Off compares the replay without a change with the recording, by metric.
	Off []finding.Without

	set      *request.Set
	slo      []requests.Objective
	others   requests.Count // requests that are not played
	recorded []replay.Latency
	base     [][]replay.Latency // replays without a change, by draw
}

// draws is the fewest times that a change is played. The first draw has the recorded random errors, and the others
// those of nearby steps and requests.
const draws = 5

// plays returns the number of draws. Large runs need fewer, and take longer.
func (r *Run) plays() uint64 {
	const most, requests = 4 * draws, 20_000
	return uint64(min(max(draws, requests/max(1, len(r.recorded))), most))
}

// model is the relative error that the model of a change may have.
const model = 0.1

// maxOff is the largest relative error of p50 and p99 in a replay without a change.
const maxOff = 0.05

// fewRequests is the fewest requests for a percentile.
const fewRequests = 50

// New reconstructs the run of a set of requests, and replays it without a change.
func New(s *request.Set, objectives []requests.Objective) *Run {
	r := &Run{Run: replay.Read(s), set: s, slo: objectives}
	if r.recorded = r.Recorded(); r.thin() {
		return r
	}
	r.FitSteps()
	r.judgeOthers()
	if r.fitKV(); r.isOff() && r.OwnLimits() {
		r.base = nil
		r.fitKV()
	}
	for seed := uint64(len(r.base)); seed < r.plays(); seed++ {
		out, ok := r.Play(r.Plan(seed))
		if !ok {
			r.Refused = "played again, some requests never end: the servers do not work as SGLang's schedulers do"
			return r
		}
		r.base = append(r.base, out)
	}
	r.check()
	return r
}

// judgeOthers judges the requests that are not played by the objectives.
func (r *Run) judgeOthers() {
	played := make([]bool, len(r.set.Requests))
	for i := range r.recorded {
		played[r.Requests[r.recorded[i].Request].Index] = true
	}
	for i := range r.set.AllRequests() {
		if !played[i] && r.slo != nil {
			r.others.Add(requests.Judge(r.slo, &r.set.Requests[i]))
		}
	}
}

// sizes are factors to try for the size of the KV cache, which is only estimated from which requests got room.
var sizes = [...]float64{1, 1.0005, 0.9995, 1.001, 0.999, 1.002, 0.998, 1.0035, 0.9965, 1.005, 0.995, 1.0075, 0.9925, 1.01, 0.99}

// fitKV searches for the size of the KV caches within its uncertainty if the replay does not reproduce the recording:
// on full servers, a few tokens decide which requests wait. The replay with the best size is the first draw.
func (r *Run) fitKV() {
	best, least := 1.0, math.Inf(1)
	for _, size := range sizes {
		plan := r.Plan(0)
		if waited := plan.KV(size); !waited && size != 1 {
			break // no request waited for KV cache, so its size does not matter
		}
		out, ok := r.Play(plan)
		if !ok {
			continue
		}
		if worst, _ := r.offBy(out); worst < least {
			best, least = size, worst
			r.base = [][]replay.Latency{out}
		}
		if least <= maxOff {
			break
		}
	}
	r.ScaleKV(best)
}

// isOff reports whether the replay does not reproduce the recording.
func (r *Run) isOff() bool {
	if len(r.base) == 0 {
		return true
	}
	worst, _ := r.offBy(r.base[0])
	return worst > maxOff
}

// thin reports whether something necessary is missing, and sets Refused to what it is.
func (r *Run) thin() bool {
	finished, untraced := 0, 0
	for i := range r.set.AllRequests() {
		if q := &r.set.Requests[i]; q.Status == request.Finished && q.Metrics.E2E >= 0 {
			finished++
		}
	}
	for i := range r.recorded {
		if r.Untraced(r.recorded[i].Request) {
			untraced++
		}
	}
	m := &r.Missing
	switch {
	case m.Bare:
		r.Refused = "the servers traced only whole requests, no stages: when they computed what is unknown"
	case m.Pipelines:
		r.Refused = "a pipeline has several batches under way, which cannot be replayed"
	case m.Level, r.stepless():
		r.Refused = "the dump has no decode steps: it takes trace level 3 (SGLANG_TRACE_LEVEL=3)"
	case 10*untraced > len(r.recorded):
		r.Refused = fmt.Sprintf("%d of %d finished requests have no decode steps in the dump, and what these did to the others is not known: it takes trace level 3 for all (SGLANG_TRACE_LEVEL=3)", untraced, finished)
	case len(r.recorded) < fewRequests:
		r.Refused = fmt.Sprintf("%s of %d finished can be replayed, and percentiles take %d", words.Counted(len(r.recorded), "request"), finished, fewRequests)
		if m.Incomplete+m.NoRank+m.NoSteps > 0 {
			r.Refused += fmt.Sprintf("; spans of %d are missing", m.Incomplete+m.NoRank+m.NoSteps)
		}
	case 10*len(r.recorded) < 9*finished:
		r.Refused = fmt.Sprintf("%d of %d finished requests can be replayed: the others lack spans, and what they did to their neighbors is not known", len(r.recorded), finished)
	}
	return r.Refused != ""
}

// stepless reports whether requests have more than one token, but no engine has decode steps.
func (r *Run) stepless() bool {
	for i := range r.Engines {
		if slices.ContainsFunc(r.Engines[i].Steps, func(s replay.Step) bool { return s.Kind == replay.Decode }) {
			return false
		}
	}
	return slices.ContainsFunc(r.set.Requests, func(q request.Request) bool { return q.Metrics.CompletionTokens > 1 })
}

// check compares the replay without a change with the recording.
func (r *Run) check() {
	for _, m := range r.metrics() {
		if is, played := m.of(r.recorded), m.of(r.base[0]); !math.IsNaN(is) {
			r.Off = append(r.Off, finding.Without{Metric: m.name, Unit: m.unit, Actual: is, Without: played, Low: played, High: played})
		}
	}
	if worst, name := r.offBy(r.base[0]); worst > maxOff {
		r.Refused = fmt.Sprintf("played again without a change, %s is %.0f %% off what was recorded: %s", name, 100*worst, r.whyOff())
	}
}

// offBy returns the metric with the largest relative error, and that error.
func (r *Run) offBy(out []replay.Latency) (worst float64, name string) {
	for _, m := range r.metrics() {
		is, played := m.of(r.recorded), m.of(out)
		if off := math.Abs(played/is - 1); m.unit == table.Duration && math.Abs(played-is) > minOff && off > worst {
			worst, name = off, m.name
		}
	}
	return worst, name
}

// minOff is the smallest difference between replay and recording that counts, in ns.
const minOff = 2_000_000

// A metric is a number computed from latencies.
type metric struct {
	name    string
	unit    table.Unit
	value   func(*replay.Latency) int64 // the value whose percentile it is
	percent int
	of      func(list []replay.Latency) float64
}

// chance returns how far the metric may be from that of other runs like this one, with 95 % confidence: for a
// percentile, from its order statistics, and for a share, from the binomial distribution. It is halved because the
// requests are the same, and only the time that servers take varies.
func (m *metric) chance(list []replay.Latency) float64 {
	const sure = 1.96
	if m.unit == table.Share {
		p := m.of(list)
		return sure * math.Sqrt(p*(1-p)/float64(max(1, len(list)))) / 2
	}
	var values []int64
	for i := range list {
		if v := m.value(&list[i]); v >= 0 {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n, p := float64(len(values)), float64(m.percent)/100
	at := func(rank float64) float64 {
		return float64(values[min(max(int(rank), 0), len(values)-1)])
	}
	d := sure * math.Sqrt(n*p*(1-p))
	return (at(n*p+d) - at(n*p-d)) / 4
}

// metrics returns the metrics that are compared.
func (r *Run) metrics() []metric {
	percentile := func(name string, value func(*replay.Latency) int64, percent int) metric {
		return metric{name, table.Duration, value, percent, func(list []replay.Latency) float64 {
			if v := replay.Percentile(list, value, percent); v != request.Unknown {
				return float64(v)
			}
			return math.NaN()
		}}
	}
	list := []metric{percentile("e2e.p50", replay.E2E, 50), percentile("e2e.p99", replay.E2E, 99), percentile("ttft.p50", replay.TTFT, 50), percentile("ttft.p99", replay.TTFT, 99)}
	if r.slo != nil {
		list = append(list, metric{name: "goodput", unit: table.Share, of: r.goodput})
	}
	return list
}

// goodput returns the share of requests that would meet the objectives. Requests that are not played, such as failed
// ones, count as recorded.
func (r *Run) goodput(list []replay.Latency) float64 {
	count := r.others
	for i := range list {
		q := r.set.Requests[r.Requests[list[i].Request].Index]
		m := &q.Metrics
		if m.TPOT >= 0 && m.CompletionTokens > 1 {
			m.TPOT = max(0, m.TPOT+((list[i].E2E-m.E2E)-(list[i].TTFT-m.UserTTFT))/(m.CompletionTokens-1))
		}
		m.TTFT = max(0, m.TTFT+list[i].TTFT-m.UserTTFT)
		m.E2E, m.UserTTFT = list[i].E2E, list[i].TTFT
		count.Add(requests.Judge(r.slo, &q))
	}
	return count.Share()
}

// A Change is a modification of a plan.
type Change struct {
	Name string // "without f3a1: ..."
	do   func(p *replay.Plan)
	// Assumed lists the assumptions of the answer.
	Assumed []string
}

// Ask plays a change. The change must fit the run: see [Run.Fix] and [Settings].
func (r *Run) Ask(c *Change) ([]finding.Without, error) {
	var played [][]replay.Latency
	for seed := range r.plays() {
		p := r.Plan(seed)
		c.do(p)
		out, ok := r.Play(p)
		if !ok {
			return nil, fmt.Errorf("%s: some requests would never end", c.Name)
		}
		played = append(played, out)
	}
	var out []finding.Without
	for _, m := range r.metrics() {
		if is := m.of(r.recorded); !math.IsNaN(is) {
			out = append(out, r.compare(m, is, played))
		}
	}
	return out, nil
}

// compare predicts a metric with a change: the mean of the draws, plus the part of the recorded run's random
// deviation that persists with the change. A regression over the draws gives that part: all of it if nothing changes,
// and none if requests meet other requests. The interval covers the spread of the draws, the sampling error of the
// percentile, the error of the replay without a change, and an error of a tenth in the model of the change.
func (r *Run) compare(m metric, is float64, played [][]replay.Latency) finding.Without {
	var before, after []float64
	for i := range played {
		before, after = append(before, m.of(r.base[i])), append(after, m.of(played[i]))
	}
	mean, spread, kept := luck(before, after)
	off := is - before[0]
	w := finding.Without{Metric: m.name, Unit: m.unit, Actual: is, Without: max(0, mean+kept+off)}
	const sure = 2
	half := math.Hypot(sure*spread, m.chance(played[0])) + math.Abs(off) + model*math.Abs(w.Without-is)
	w.Low, w.High = max(0, w.Without-half), w.Without+half
	if m.unit == table.Share {
		w.Without, w.High = min(1, w.Without), min(1, w.High)
	}
	return w
}

// luck returns the mean and the standard deviation over the draws with a change, and the deviation from the mean that
// is expected with the random errors of the first draw, given the same draws without the change.
func luck(before, after []float64) (mean, spread, kept float64) {
	n, was := float64(len(after)), 0.0
	for i := range after {
		was += before[i] / n
		mean += after[i] / n
	}
	var own, both float64
	for i := range after {
		own += (before[i] - was) * (before[i] - was)
		both += (before[i] - was) * (after[i] - mean)
		spread += (after[i] - mean) * (after[i] - mean) / (n - 1)
	}
	if own > 0 {
		kept = min(max(0, both/own), 1) * (before[0] - was)
	}
	return mean, math.Sqrt(spread), kept
}

// Combine combines several changes into one.
func Combine(list []*Change) *Change {
	c := &Change{}
	var names []string
	for _, x := range list {
		names = append(names, x.Name)
		c.Assumed = append(c.Assumed, x.Assumed...)
	}
	c.Name = strings.Join(names, ", ")
	c.do = func(p *replay.Plan) {
		for _, x := range list {
			x.do(p)
		}
	}
	return c
}

// An Answer is a change with its predicted metrics.
type Answer struct {
	*Change
	Metrics []finding.Without
}

// A line is one metric of an answer.
type line struct {
	change string
	*finding.Without
}

// Report returns the table of answers, with their assumptions and the error of the replay.
func (r *Run) Report(answers []Answer) *table.Table {
	t := StepReport(answers)
	t.Note("%s", r.fit())
	return t
}

// StepReport returns the table of answers, with their assumptions.
func StepReport(answers []Answer) *table.Table {
	var lines []line
	for i := range answers {
		for k := range answers[i].Metrics {
			lines = append(lines, line{answers[i].Name, &answers[i].Metrics[k]})
		}
	}
	shares := slices.ContainsFunc(lines, func(l line) bool { return l.Unit == table.Share })
	fields := []table.Field[line]{
		table.TextColumn("change", "what the replay changes", func(l *line) string { return l.change }),
		table.TextColumn("metric", "for finished requests: percentiles of E2E and user TTFT, and the share that meets --slo; for steps: means; for bubbles: the share of time in which pipeline stages compute nothing", func(l *line) string { return l.Metric }),
	}
	valueFields := func(name, doc string, of func(*finding.Without) float64) []table.Field[line] {
		list := valueFields(name, doc, of)
		if !shares {
			list = list[:1]
		}
		return list
	}
	fields = append(fields, valueFields("actual", "recorded value", func(w *finding.Without) float64 { return w.Actual })...)
	fields = append(fields, valueFields("with change", "estimated value with the change", func(w *finding.Without) float64 { return w.Without })...)
	fields = append(fields, valueFields("low", "lower bound of the estimate", func(w *finding.Without) float64 { return w.Low })...)
	fields = append(fields, valueFields("high", "upper bound of the estimate", func(w *finding.Without) float64 { return w.High })...)
	fields = append(fields, table.TextColumn("differs", "yes if the recorded value is outside of the estimate's bounds; otherwise the difference may be noise", func(l *line) string {
		if l.Differs() {
			return "yes"
		}
		return "no"
	}))
	t := table.New("sgtrace.report.whatif/v1", "What if", lines, fields)
	for i := range answers {
		for _, text := range answers[i].Assumed {
			t.Note("%s: assumes that %s", answers[i].Name, text)
		}
	}
	return t
}

// valueFields returns the columns of a value: one for times, and one for shares.
func valueFields(name, doc string, of func(*finding.Without) float64) []table.Field[line] {
	return []table.Field[line]{
		table.NsColumn(name, doc, func(l *line) int64 {
			if v := of(l.Without); l.Unit == table.Duration && !math.IsNaN(v) {
				return int64(v)
			}
			return request.Unknown
		}),
		table.ShareColumn(name+" share", doc+", for goodput and bubbles", func(l *line) float64 {
			if l.Unit == table.Share {
				return of(l.Without)
			}
			return math.NaN()
		}),
	}
}

// fit says how far the replay without a change is off the recording.
func (r *Run) fit() string {
	var list []string
	for i := range r.Off {
		w := &r.Off[i]
		if w.Unit == table.Share {
			list = append(list, fmt.Sprintf("%s %+.1f points", w.Metric, 100*(w.Without-w.Actual)))
		} else if w.Actual > 0 {
			list = append(list, fmt.Sprintf("%s %+.1f %%", w.Metric, 100*(w.Without/w.Actual-1)))
		}
	}
	return fmt.Sprintf("played without a change, %s are off by: %s", words.Counted(len(r.recorded), "request"), strings.Join(list, ", "))
}
