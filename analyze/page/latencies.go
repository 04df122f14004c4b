package page

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// maxLines limits the curves of a figure to the number of colors.
const maxLines = chart.Hues

const howToReadPercentiles = "A point of a curve says what percentage of the values took that long or less; p99 is near the top. " +
	"The time axis is logarithmic. The percentile axis is stretched, so that the tail has as much room as the body."

// Latencies makes the section about the durations of requests and stages, including the data of all requests that the
// script needs. goodput is nil if there is no SLO.
func Latencies(set *request.Set, goodput *requests.Goodput, src Source) Section {
	s := Section{ID: "latency", Title: "Latency"}
	pack := &Packer{maxPacked}
	if len(set.Procs) > crowded {
		pack.room = crowdedPacked
	}
	s.Requests = pack.Requests(set)
	if goodput != nil && s.Requests != nil {
		s.Requests.Judge(goodput, len(set.Requests))
	}
	if lines := requestLines(set); len(lines) > 0 {
		notes := packLines(pack, lines)
		s.Figures = append(s.Figures, &Figure{
			ID: "requests-percentiles", Title: "Finished requests", Caption: howToReadPercentiles, Defined: "Metrics of a request",
			Command: src.Command("--latency"), Body: &chart.Percentiles{Lines: distributions(lines)}, Notes: notes,
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
		if len(lines) > maxLines {
			f.Notes = append(f.Notes, roomNote(maxLines, len(lines), "stages"))
			lines = lines[:maxLines]
		}
		f.Notes = append(f.Notes, packLines(pack, lines)...)
		f.Body = &chart.Percentiles{Lines: distributions(lines)}
		s.Figures = append(s.Figures, f)
	}
	s.Figures = append(s.Figures, TableOf(requests.MeasureLatencies(set).Report(), 0, "Latency", src.Command("--latency")))
	return s
}

// A line has durations, ascending, and their requests.
type line struct {
	name     string
	ns       []int64
	requests []int32 // indexes into Set.Requests, or request.None
	packed   string
}

func (l *line) add(ns int64, request int) {
	l.ns, l.requests = append(l.ns, ns), append(l.requests, int32(request))
}

// Len, Less and Swap sort the durations.
func (l *line) Len() int           { return len(l.ns) }
func (l *line) Less(i, k int) bool { return l.ns[i] < l.ns[k] }
func (l *line) Swap(i, k int) {
	l.ns[i], l.ns[k] = l.ns[k], l.ns[i]
	l.requests[i], l.requests[k] = l.requests[k], l.requests[i]
}

// requestLines returns the distributions of the metrics of finished requests, as users see them.
func requestLines(set *request.Set) []*line {
	var lines []*line
	var values []int64
	gateway := set.HasGateway()
	for _, m := range metric.Requests {
		if !m.Curve {
			continue
		}
		if gateway {
			m = m.AsSeen()
		}
		l := &line{name: m.Title}
		for i := range set.AllRequests() {
			if r := &set.Requests[i]; r.Status == request.Finished {
				values = m.Values(values[:0], set, r)
				for _, v := range values {
					l.add(v, i)
				}
			}
		}
		lines = append(lines, l)
	}
	lines = slices.DeleteFunc(lines, func(l *line) bool { return l.Len() == 0 })
	for _, l := range lines {
		sort.Sort(l)
	}
	return lines
}

// stageLines returns the distributions of the stages of each role, those with the most time first. It reads the same
// spans as requests.GroupStages.
func stageLines(set *request.Set) [request.Other + 1][]*line {
	type key struct {
		role request.Role
		name string
	}
	byKey := map[key]*line{}
	var lines [request.Other + 1][]*line
	for i := range set.All() {
		span := set.Row(i)
		if set.Kind(i) != request.Stage || set.Implausible(i) || set.Again(i) {
			continue
		}
		at := key{request.Other, set.Name(i)}
		if proc := set.ProcOf(i); proc != request.None {
			at.role = set.Procs[proc].Role
		}
		if byKey[at] == nil {
			byKey[at] = &line{name: at.name}
			lines[at.role] = append(lines[at.role], byKey[at])
		}
		byKey[at].add(span.Dur(), set.RequestOf(i))
	}
	for _, list := range lines {
		for _, l := range list {
			sort.Sort(l)
		}
		slices.SortFunc(list, func(a, b *line) int {
			return cmp.Or(cmp.Compare(total(b.ns), total(a.ns)), cmp.Compare(a.name, b.name))
		})
	}
	return lines
}

// total returns the sum of durations as a float, because forged durations would overflow an int64.
func total(durations []int64) float64 {
	return order.Sum(durations, func(d int64) float64 { return float64(d) })
}

// distributions assigns a color to each line.
func distributions(lines []*line) []chart.Distribution {
	var list []chart.Distribution
	for i, l := range lines {
		list = append(list, chart.Distribution{Name: l.name, Values: l.ns, Packed: l.packed, Color: i % chart.Hues})
	}
	return list
}

// packLines packs the values of lines, and notes those that don't fit.
func packLines(pack *Packer, lines []*line) (notes []string) {
	var left []string
	for _, l := range lines {
		owners := order.Each(l.requests, func(r int32) int32 { return r + 1 })
		if l.packed = pack.Durations(l.ns, owners); l.packed == "" {
			left = append(left, l.name)
		}
	}
	if len(left) == 0 || len(left) == len(lines) {
		return nil // the script says that the figure shows the whole run
	}
	return []string{fmt.Sprintf("%s: too many values to embed, so these curves show the whole run; with --from and --to, the command prints a range", strings.Join(left, ", "))}
}
