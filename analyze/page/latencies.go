package page

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/request"
)

// mostLines is how many curves a figure has: as many as there are colors.
const mostLines = chart.Hues

const howToReadPercentiles = "How many percent of the values last no longer than what stands below: p99 is the line near the top. " +
	"The axis of time is logarithmic; that of percentiles gives the tail as much room as the body."

// Latencies makes the section about how long requests and stages took.
func Latencies(set *request.Set, src Source) Section {
	s := Section{ID: "latency", Title: "Latency"}
	if lines := requestLines(set); len(lines) > 0 {
		s.Figures = append(s.Figures, &Figure{
			ID: "requests-percentiles", Title: "Finished requests", Caption: howToReadPercentiles, Defined: "Metrics of a request",
			Command: src.Command("--latency"), Body: &chart.Percentiles{Lines: lines},
		})
	}
	for role, lines := range stageLines(set) {
		if len(lines) == 0 {
			continue
		}
		f := &Figure{
			Title: "Stages of " + request.Role(role).String() + " servers", Caption: howToReadPercentiles + " All ranks together.",
			Defined: "Stages", Command: src.Command("--by=role"),
		}
		if len(lines) > mostLines {
			f.Notes = append(f.Notes, roomNote(mostLines, len(lines), "stages"))
			lines = lines[:mostLines]
		}
		f.Body = &chart.Percentiles{Lines: colored(lines)}
		s.Figures = append(s.Figures, f)
	}
	s.Figures = append(s.Figures, TableOf(requests.MeasureLatencies(set).Report(), 0, "Latency", src.Command("--latency")))
	return s
}

// requestLines returns the distributions of what users see, over finished requests.
func requestLines(set *request.Set) []chart.Distribution {
	metrics := []struct {
		name string
		of   func(*request.Metrics) int64
	}{
		{"E2E", func(m *request.Metrics) int64 { return m.E2E }},
		{"TTFT", func(m *request.Metrics) int64 { return m.TTFT }},
		{"TPOT", func(m *request.Metrics) int64 { return m.TPOT }},
		{"queue", func(m *request.Metrics) int64 { return m.Queue }},
		{"transfer", func(m *request.Metrics) int64 { return m.Transfer }},
	}
	values := make([][]int64, len(metrics))
	var gaps []int64
	for i := range set.Requests {
		r := &set.Requests[i]
		if r.Status != request.Finished {
			continue
		}
		for k, m := range metrics {
			if v := m.of(&r.Metrics); v >= 0 {
				values[k] = append(values[k], v)
			}
		}
		gaps = append(gaps, set.Gaps(r)...)
	}
	lines := []chart.Distribution{}
	add := func(name string, values []int64) {
		if len(values) > 0 {
			slices.Sort(values)
			lines = append(lines, chart.Distribution{Name: name, Values: values})
		}
	}
	for k, m := range metrics {
		add(m.name, values[k])
	}
	add("ITL", gaps)
	return colored(lines)
}

// stageLines returns the distributions of the stages of each role, those that took
// most time first. They are of the spans that analyze.GroupStages has.
func stageLines(set *request.Set) [request.Other + 1][]chart.Distribution {
	type key struct {
		role request.Role
		name string
	}
	values := map[key][]int64{}
	for i := range set.Len() {
		span := set.Row(i)
		if set.Kind(i) != request.Stage || set.Implausible(i) || set.Again(i) {
			continue
		}
		at := key{request.Other, set.Name(i)}
		if proc := set.ProcOf(i); proc != request.None {
			at.role = set.Procs[proc].Role
		}
		values[at] = append(values[at], span.Dur())
	}
	var lines [request.Other + 1][]chart.Distribution
	for at, v := range values {
		slices.Sort(v)
		lines[at.role] = append(lines[at.role], chart.Distribution{Name: at.name, Values: v})
	}
	for _, list := range lines {
		slices.SortFunc(list, func(a, b chart.Distribution) int {
			return cmp.Or(cmp.Compare(total(b.Values), total(a.Values)), cmp.Compare(a.Name, b.Name))
		})
	}
	return lines
}

// total adds up durations; in floating point, as forged ones would wrap around.
func total(durations []int64) float64 {
	sum := 0.0
	for _, d := range durations {
		sum += float64(d)
	}
	return sum
}

// colored gives every line its color.
func colored(lines []chart.Distribution) []chart.Distribution {
	for i := range lines {
		lines[i].Color = i % chart.Hues
	}
	return lines
}
