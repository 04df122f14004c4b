package whatif

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// An Axis is a range of numbers of servers of a role.
type Axis struct {
	Role     request.Role
	From, To int
}

// maxPoints is the largest number of deployments that a sweep plays.
const maxPoints = 256

// ParseSweep parses "prefill=1..4,decode=1..8".
func ParseSweep(text string) (axes []Axis, err error) {
	points := 1
	for part := range strings.SplitSeq(text, ",") {
		role, span, err := roleValue(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		first, last, ok := strings.Cut(span, "..")
		if !ok {
			last = first
		}
		a := Axis{Role: role}
		if a.From, err = strconv.Atoi(first); err == nil {
			a.To, err = strconv.Atoi(last)
		}
		if err != nil || a.From < 1 || a.To < a.From || a.To > maxPoints {
			return nil, fmt.Errorf("%q: want ROLE=FROM..TO, such as decode=1..8", part)
		}
		if slices.ContainsFunc(axes, func(b Axis) bool { return a.Role == b.Role }) {
			return nil, fmt.Errorf("%s is there twice", a.Role)
		}
		points *= a.To - a.From + 1
		axes = append(axes, a)
	}
	if points > maxPoints {
		return nil, fmt.Errorf("%d deployments, and %d at most are played", points, maxPoints)
	}
	return axes, nil
}

// A Point is a deployment with its predicted latencies.
type Point struct {
	Servers []int // by axis
	Metrics []finding.Without
	// Knee marks the smallest deployment for which more servers are not worth it: none lowers E2E p99 by another
	// twentieth or, with objectives, lets another hundredth of the requests meet them.
	Knee bool
}

// total returns the number of servers of a point.
func (p *Point) total() (n int) {
	return order.Total(p.Servers)
}

// Sweep plays all combinations of the axes.
func (r *Run) Sweep(axes []Axis) ([]Point, error) {
	var points []Point
	at := make([]int, len(axes))
	for i := range axes {
		if r.Servers(r.Plan(0), axes[i].Role, 1, replay.MinLoaded) == 0 {
			return nil, fmt.Errorf("no %s server computed anything", axes[i].Role)
		}
		at[i] = axes[i].From
	}
	for {
		plan := r.Plan(0)
		for i := range axes {
			r.Servers(plan, axes[i].Role, at[i], replay.MinLoaded)
		}
		out, ok := r.Play(plan)
		p := Point{Servers: slices.Clone(at)}
		for _, m := range r.metrics() {
			w := finding.Without{Metric: m.name, Unit: m.unit, Actual: m.of(r.recorded), Without: math.NaN()}
			if ok {
				w.Without = m.of(out)
			}
			p.Metrics = append(p.Metrics, w)
		}
		points = append(points, p)
		i := len(axes) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] <= axes[i].To {
				break
			}
			at[i] = axes[i].From
		}
		if i < 0 {
			markKnee(points)
			return points, nil
		}
	}
}

// markKnee marks the smallest deployment beyond which more servers bring little, if larger ones were played.
func markKnee(points []Point) {
	better := func(p, q *Point) bool { // q is enough better than p to be worth more servers
		const time, share = 0.95, 0.01
		last := len(p.Metrics) - 1
		if p.Metrics[last].Unit == table.Share {
			return q.Metrics[last].Without > p.Metrics[last].Without+share
		}
		return q.Metrics[1].Without < time*p.Metrics[1].Without
	}
	best, most := -1, 0
	for i := range points {
		most = max(most, points[i].total())
		p := &points[i]
		if slices.ContainsFunc(points, func(q Point) bool { return q.total() > p.total() && better(p, &q) }) {
			continue
		}
		if best < 0 || p.total() < points[best].total() || p.total() == points[best].total() && better(&points[best], p) {
			best = i
		}
	}
	if best >= 0 && points[best].total() < most {
		points[best].Knee = true
	}
}

// SweepReport returns the table of deployments.
func (r *Run) SweepReport(axes []Axis, points []Point) *table.Table {
	var fields []table.Field[Point]
	for _, role := range []request.Role{request.Prefill, request.Decode, request.Unified} {
		at := slices.IndexFunc(axes, func(a Axis) bool { return a.Role == role })
		fields = append(fields, table.CountColumn(role.String(), role.String()+" servers", func(p *Point) int64 {
			if at < 0 {
				return request.Unknown
			}
			return int64(p.Servers[at])
		}))
	}
	for i, m := range r.metrics() {
		name := strings.ReplaceAll(m.name, ".", " ")
		if m.unit == table.Share {
			fields = append(fields, table.ShareColumn(name, "share of requests that would meet --slo", func(p *Point) float64 { return p.Metrics[i].Without }),
				table.TextColumn("chart", "bar chart of goodput", func(p *Point) string { return bar(p.Metrics[i].Without) }))
			continue
		}
		fields = append(fields, table.NsColumn(name, "estimated value with these servers", func(p *Point) int64 {
			if v := p.Metrics[i].Without; !math.IsNaN(v) {
				return int64(v)
			}
			return request.Unknown
		}))
	}
	fields = append(fields, table.TextColumn("knee", "marks the knee: the fewest servers beyond which more servers help little (under 5 % of E2E p99, or under 1 % of the requests with --slo)", func(p *Point) string {
		if p.Knee {
			return "knee"
		}
		return ""
	}))
	t := table.New("sgtrace.report.whatif.sweep/v1", "Deployments", points, fields).Stay("knee")
	t.Note("requests go to the server with the fewest; new servers take as long as the recorded ones on average")
	t.Note("%s", r.deployed(axes))
	if !slices.ContainsFunc(points, func(p Point) bool { return p.Knee }) {
		t.Note("no knee: more servers than these may help even more")
	}
	t.Note("%s", r.fit())
	return t
}

// deployed says how many servers the recorded run had, and its latencies.
func (r *Run) deployed(axes []Axis) string {
	var servers, values []string
	for i := range axes {
		n := r.Servers(r.Plan(0), axes[i].Role, 1, replay.MinLoaded)
		servers = append(servers, fmt.Sprintf("%s=%d", axes[i].Role, n))
	}
	for _, m := range r.metrics() {
		w := finding.Without{Metric: m.name, Unit: m.unit}
		values = append(values, w.Title()+" "+w.Value(m.of(r.recorded)))
	}
	return fmt.Sprintf("recorded: %s, routed as they were: %s; each DP rank is a server here", strings.Join(servers, ","), strings.Join(values, ", "))
}

// bar draws a share as a bar.
func bar(share float64) string {
	const width = 20
	if math.IsNaN(share) {
		return ""
	}
	return strings.Repeat("#", int(math.Round(width*share)))
}

// ModelReport returns the table of the step time models of each server.
func (r *Run) ModelReport() *table.Table {
	type row struct {
		replay.Model
		where, kind string
	}
	var rows []row
	for i := range r.Engines {
		e := &r.Engines[i]
		for _, k := range []replay.Kind{replay.Prefill, replay.Decode} {
			if m := e.Model(k); m.Steps > 0 {
				rows = append(rows, row{m, e.DP(), k.String()})
			}
		}
	}
	t := table.New("sgtrace.report.whatif.models/v1", "Step times", rows, []table.Field[row]{
		table.TextColumn("server", "server that computes the steps", func(m *row) string { return m.where }),
		table.TextColumn("kind", "kind of step: prefill or decode", func(m *row) string { return m.kind }),
		table.CountColumn("steps", "number of steps that the model is fitted to", func(m *row) int64 { return int64(m.Steps) }),
		table.NsColumn("base", "fixed time per step", func(m *row) int64 { return int64(m.Base) }),
		table.NumberColumn("new token", "ns per prompt token computed", func(m *row) float64 { return m.New }),
		table.NumberColumn("request", "ns per request in the batch", func(m *row) float64 { return m.Requests }),
		table.NumberColumn("context token", "ns per token of context of the requests in the batch", func(m *row) float64 { return m.Context }),
		table.NumberColumn("join", "extra ns if requests join the batch", func(m *row) float64 { return m.Joined }),
		table.ShareColumn("off", "median error of the model, as a share of the step time", func(m *row) float64 { return m.Off }),
	})
	t.Note("new token, request, context token, and join are in ns")
	return t
}
