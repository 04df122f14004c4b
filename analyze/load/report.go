package load

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A pointRow is one series in one bucket.
type pointRow struct{ series, bucket int32 }

// Report makes a table of the timeline: a row per place and bucket. The times of stages are in CSV and
// JSON only, as the table would be too wide.
func (t *Timeline) Report() *table.Table {
	rows := make([]pointRow, 0, len(t.Series)*t.N())
	for s := range t.Series {
		for b := range t.Series[s].Points {
			rows = append(rows, pointRow{int32(s), int32(b)})
		}
	}
	series := func(r *pointRow) *Series { return &t.Series[r.series] }
	point := func(r *pointRow) *Point { return &t.Series[r.series].Points[r.bucket] }
	fields := place.LocationColumns(func(r *pointRow) *place.Location { return &series(r).Location })
	fields = append(fields,
		table.TextColumn("lead", "yes if the rank represents all ranks that do the same work; a role is the sum of its lead ranks", func(r *pointRow) string {
			if series(r).Lead {
				return "yes"
			}
			return ""
		}),
		table.TimeColumn("time", "start of the bucket, Unix time", func(r *pointRow) trace.Time { return t.Start(int(r.bucket)) }),
		table.NsColumn("length", "length of the part of the bucket between the first and the last request", func(r *pointRow) int64 {
			from, to := t.bounds(int(r.bucket))
			return int64(to - from)
		}),
		table.CountColumn("arrivals", "number of requests that arrived", func(r *pointRow) int64 { return point(r).Arrivals }),
		table.NumberColumn("running", "average number of requests in a prefill or decode stage; for scope all, of requests in progress", func(r *pointRow) float64 { return point(r).Running }),
		table.NumberColumn("queued", "average number of requests waiting for a batch, for memory, or for the other server", func(r *pointRow) float64 { return point(r).Queued }),
		table.NumberColumn("transferring", "average number of requests in KV transfer", func(r *pointRow) float64 { return point(r).Transferring }),
		table.CountColumn("output tokens", "output tokens", func(r *pointRow) int64 { return point(r).Output }),
		table.CountColumn("prompt tokens", "prompt tokens computed, without cached ones", func(r *pointRow) int64 { return point(r).Prefill }),
		table.ShareColumn("busy", "prefill servers: share of time spent on prefill; others: running, divided by the most requests that ran at once on any rank of the role", func(r *pointRow) float64 { return point(r).Busy }),
		table.ShareColumn("share", "share of the role's arrivals", func(r *pointRow) float64 { return point(r).Share }),
		table.NumberColumn("imbalance", "running requests of the busiest lead rank divided by the mean of all lead ranks", func(r *pointRow) float64 { return point(r).Imbalance }),
	)
	if len(t.Series) > 0 && t.Series[0].Good != nil {
		fields = append(fields, goodColumns(series)...)
	}
	for k, stage := range t.Stages {
		fields = append(fields, spreadColumns(stage, func(r *pointRow) []Spread { return series(r).Stages[k] })...)
	}
	fields = append(fields, spreadColumns("ttft", func(r *pointRow) []Spread { return series(r).TTFT })...)
	fields = append(fields, spreadColumns("tpot", func(r *pointRow) []Spread { return series(r).TPOT })...)
	r := table.New("sgtrace.report.timeline/v1", "Timeline", rows, fields)
	for _, note := range t.Notes() {
		r.Note("%s", note)
	}
	return r
}

// goodColumns returns the columns of requests that met an SLO.
func goodColumns(series func(*pointRow) *Series) []table.Field[pointRow] {
	of := func(r *pointRow) (g GoodCount, known bool) {
		if good := series(r).Good; good != nil {
			return good[r.bucket], true
		}
		return GoodCount{}, false
	}
	return []table.Field[pointRow]{
		table.CountColumn("met slo", "requests that arrived and met the SLO", func(r *pointRow) int64 {
			if g, known := of(r); known {
				return g.Met
			}
			return request.Unknown
		}),
		{Column: table.Column{Name: "goodput", Unit: table.Share, Doc: "met_slo as a share of the requests that met or missed the SLO"}, Cell: func(r *pointRow) table.Cell {
			g, _ := of(r)
			return table.ShareCell(g.Met, g.Judged)
		}},
	}
}

// spreadColumns returns the columns for how long something took.
func spreadColumns(name string, of func(*pointRow) []Spread) []table.Field[pointRow] {
	at := func(r *pointRow) Spread {
		if spreads := of(r); spreads != nil {
			return spreads[r.bucket]
		}
		return Spread{}
	}
	known := func(s Spread, ns int64) int64 {
		if s.N == 0 {
			return request.Unknown
		}
		return ns
	}
	fields := []table.Field[pointRow]{
		table.CountColumn(name+" n", "number of "+name+" that began", func(r *pointRow) int64 { return int64(at(r).N) }),
		table.NsColumn(name+" p50", "median "+name+", nearest rank", func(r *pointRow) int64 { return known(at(r), at(r).P50) }),
		table.NsColumn(name+" p99", "99th percentile of "+name+", nearest rank", func(r *pointRow) int64 { return known(at(r), at(r).P99) }),
	}
	return table.Detail(fields)
}

// Write draws the timeline as text: a block per place, and a line per metric, as a curve over the
// buckets with its lowest and highest value. Ranks that do the same work side by side are one block,
// that of their lead rank. marks are times to mark.
func (t *Timeline) Write(out io.Writer, style table.Style, marks ...trace.Time) error {
	n := t.N()
	if n == 0 {
		_, err := fmt.Fprintf(out, "Timeline: no requests\n")
		return err
	}
	p := &printer{Timeline: t, drawing: Drawing{Buckets: n, Time: t.clock}}
	p.blocks()
	for _, at := range marks {
		p.drawing.Marks = append(p.drawing.Marks, t.Of(at))
	}
	p.drawing.Notes = append(p.drawing.Notes, t.Notes()...)
	requests := order.SumRows(t.Series[0].Points, func(p *Point) int64 { return p.Arrivals })
	table.WriteFilled(out, style, "Timeline: ", fmt.Sprintf("%s from %s, %s of %s", words.Counted(int(requests), "request"),
		words.Between(t.From, t.To), words.Counted(n, "bucket"), words.Nearly(t.Bucket)))
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return p.drawing.Write(out, style)
}

// clock formats when a bucket begins.
func (t *Timeline) clock(bucket int) string {
	layout := "15:04:05"
	if t.Bucket%int64(time.Second) != 0 {
		layout = words.ClockLayout
	}
	return words.At(t.Start(bucket), layout)
}

// A printer draws a timeline as text.
type printer struct {
	*Timeline
	drawing Drawing
}

// maxRanks is how many lead ranks of a role are drawn.
const maxRanks = 8

// blocks chooses what is drawn.
func (p *printer) blocks() {
	for i := 0; i < len(p.Series); {
		s := &p.Series[i]
		i++
		if s.Location.Scope == place.Everywhere {
			p.drawing.Add(s.Location.String(), p.wholeCurves(s))
			continue
		}
		from := i
		for i < len(p.Series) && p.Series[i].Location.Scope == place.OneRank {
			i++
		}
		p.roleBlocks(s, p.Series[from:i])
	}
}

// roleBlocks draws a role and its lead ranks, or one block for both if there is only one.
func (p *printer) roleBlocks(role *Series, ranks []Series) {
	leads, left := Busiest(ranks, func(string) bool { return false })
	if len(leads) == 1 {
		p.drawing.Add(fmt.Sprintf("%s, %s", &leads[0].Location, words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
		return
	}
	all := len(leads) + left
	p.drawing.Add(fmt.Sprintf("%s, %d lead ranks of %s", &role.Location, all, words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
	if left > 0 {
		p.drawing.Notes = append(p.drawing.Notes, fmt.Sprintf("of the %d lead ranks of %s the %d with most running requests are drawn; CSV and JSON have all",
			all, &role.Location, len(leads)))
	}
	for _, s := range leads {
		p.drawing.Add(s.Location.String(), p.rankCurves(s, false))
	}
}

// Busiest returns the lead ranks that are named, and those with the most running requests, as many as a figure has room for, and how
// many others there are.
func Busiest(ranks []Series, named func(rank string) bool) (leads []*Series, left int) {
	for i := range ranks {
		if ranks[i].Lead {
			leads = append(leads, &ranks[i])
		}
	}
	if len(leads) <= maxRanks {
		return leads, 0
	}
	running := func(s *Series) (sum float64) {
		for i := range s.Points {
			if v := s.Points[i].Running; !math.IsNaN(v) {
				sum += v
			}
		}
		return sum
	}
	busiest := slices.Clone(leads)
	slices.SortStableFunc(busiest, func(x, y *Series) int {
		return cmp.Or(order.Bool(named(y.Location.String()), named(x.Location.String())), cmp.Compare(running(y), running(x)))
	})
	left = len(leads) - maxRanks
	return slices.DeleteFunc(leads, func(s *Series) bool { return !slices.Contains(busiest[:maxRanks], s) }), left
}

func (p *printer) wholeCurves(s *Series) []Curve {
	list := []Curve{
		p.rate(s, "arrivals", func(q *Point) int64 { return q.Arrivals }),
		p.level(s, "under way", "", func(q *Point) float64 { return q.Running }),
		p.rate(s, "output tokens", func(q *Point) int64 { return q.Output }),
		p.rate(s, "prompt tokens", func(q *Point) int64 { return q.Prefill }),
	}
	if s.Good != nil {
		list = append(list, goodput(s))
	}
	list = append(list, p.spread("ttft", s.TTFT)...)
	return append(list, p.spread("tpot", s.TPOT)...)
}

// goodput returns the share of arriving requests that met the SLO.
func goodput(s *Series) Curve {
	c := Curve{Name: "goodput", Unit: "%", Size: 1}
	for _, g := range s.Good {
		c.Values = append(c.Values, distribution.Ratio(100*float64(g.Met), float64(g.Judged)))
	}
	return c
}

// rankCurves returns the curves of a role or a rank. Full ones include the tails of stages.
func (p *printer) rankCurves(s *Series, full bool) []Curve {
	list := []Curve{
		p.level(s, "share of arrivals", "%", func(q *Point) float64 { return 100 * q.Share }),
		p.level(s, "running", "", func(q *Point) float64 { return q.Running }),
		p.level(s, "imbalance", "max/mean", func(q *Point) float64 { return q.Imbalance }),
		p.level(s, "queued", "", func(q *Point) float64 { return q.Queued }),
		p.level(s, "transferring", "", func(q *Point) float64 { return q.Transferring }),
		p.level(s, "busy", "%", func(q *Point) float64 { return 100 * q.Busy }),
	}
	var brief []string
	for k, spreads := range s.Stages {
		stage := p.spread(p.Stages[k], spreads)
		switch {
		case stage == nil:
		case negligible(spreads):
			brief = append(brief, p.Stages[k])
		case full:
			list = append(list, stage...)
		default:
			list = append(list, stage[0])
		}
	}
	if len(brief) > 0 && full {
		p.drawing.Notes = append(p.drawing.Notes, fmt.Sprintf("not drawn, as always below 1 ms: %s of %s", strings.Join(brief, ", "), s.Location.Role))
	}
	return list
}

// negligible reports whether a stage never takes as long as 1 ms.
func negligible(spreads []Spread) bool {
	return !slices.ContainsFunc(spreads, func(s Spread) bool { return s.P99 >= 1_000_000 })
}

func (p *printer) rate(s *Series, name string, of func(*Point) int64) Curve {
	c := Curve{Name: name, Unit: "/s", Size: 1}
	for b := range s.Points {
		c.Values = append(c.Values, p.PerSecond(b, of(&s.Points[b])))
	}
	return c
}

func (p *printer) level(s *Series, name, unit string, of func(*Point) float64) Curve {
	c := Curve{Name: name, Unit: unit, Size: 1}
	for b := range s.Points {
		c.Values = append(c.Values, of(&s.Points[b]))
	}
	return c
}

// spread returns the curves of the median and of the tail.
func (p *printer) spread(name string, spreads []Spread) []Curve {
	if spreads == nil {
		return nil
	}
	median, tail := Curve{Name: name + " p50"}, Curve{Name: strings.Repeat(" ", len(name)) + " p99", Peaks: true}
	var medians, tails []int64
	for _, s := range spreads {
		if s.N == 0 {
			median.Values, tail.Values = append(median.Values, math.NaN()), append(tail.Values, math.NaN())
			continue
		}
		medians, tails = append(medians, s.P50), append(tails, s.P99)
		median.Values, tail.Values = append(median.Values, float64(s.P50)), append(tail.Values, float64(s.P99))
	}
	median.Unit, median.Size = words.UnitFor(slices.Max(medians))
	tail.Unit, tail.Size = words.UnitFor(slices.Max(tails))
	return []Curve{median, tail}
}
