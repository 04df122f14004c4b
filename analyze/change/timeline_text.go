package change

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/curves"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Write draws the timeline as text: a block per place and a line per metric, as a
// curve over the buckets with its lowest and highest value. Ranks that do the
// same work side by side are one block, as their lead rank has it.
func (t MarkedTimeline) Write(out io.Writer, style table.Style) error {
	n := t.N()
	if n == 0 {
		_, err := fmt.Fprintf(out, "Timeline: no requests\n")
		return err
	}
	p := &timelinePrinter{MarkedTimeline: t, drawing: curves.Drawing{Buckets: n, Time: t.clock}}
	p.blocks()
	if t.Changes != nil {
		for i := range t.Changes.List {
			p.drawing.Marks = append(p.drawing.Marks, t.Of(t.Changes.List[i].Time))
		}
	}
	p.drawing.Notes = append(p.drawing.Notes, t.Notes()...)
	requests := int64(0)
	for i := range t.Series[0].Points {
		requests += t.Series[0].Points[i].Arrivals
	}
	table.WriteFilled(out, style, "Timeline: ", fmt.Sprintf("%s from %s, %s of %s", words.Counted(int(requests), "request"),
		words.Between(t.From, t.To), words.Counted(n, "bucket"), words.Nearly(t.Bucket)))
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return p.drawing.Write(out, style)
}

// clock writes when a bucket begins.
func (t MarkedTimeline) clock(bucket int) string {
	layout := "15:04:05"
	if t.Bucket%int64(time.Second) != 0 {
		layout = words.ClockLayout
	}
	return words.At(t.Start(bucket), layout)
}

type timelinePrinter struct {
	MarkedTimeline
	drawing curves.Drawing
}

// mostRanks is how many lead ranks of a role are drawn.
const mostRanks = 8

// blocks chooses what is drawn.
func (p *timelinePrinter) blocks() {
	for i := 0; i < len(p.Series); {
		s := &p.Series[i]
		i++
		if s.Scope == place.Everywhere {
			p.drawing.Add(s.String(), p.wholeCurves(s))
			continue
		}
		from := i
		for i < len(p.Series) && p.Series[i].Scope == place.OneRank {
			i++
		}
		p.roleBlocks(s, p.Series[from:i])
	}
}

// roleBlocks draws a role and its lead ranks, or both in one if there is only
// one.
func (p *timelinePrinter) roleBlocks(role *load.Series, ranks []load.Series) {
	var leads []*load.Series
	for i := range ranks {
		if ranks[i].Lead {
			leads = append(leads, &ranks[i])
		}
	}
	if len(leads) == 1 {
		p.drawing.Add(fmt.Sprintf("%s, %s", leads[0], words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
		return
	}
	p.drawing.Add(fmt.Sprintf("%s, %d lead ranks of %s", role, len(leads), words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
	if len(leads) > mostRanks {
		busiest := slices.Clone(leads)
		slices.SortStableFunc(busiest, func(x, y *load.Series) int { return cmp.Compare(sumOfRunning(y), sumOfRunning(x)) })
		p.drawing.Notes = append(p.drawing.Notes, fmt.Sprintf("of the %d lead ranks of %s the %d with most running requests are drawn; CSV and JSON have all",
			len(leads), role, mostRanks))
		leads = slices.DeleteFunc(leads, func(s *load.Series) bool { return !slices.Contains(busiest[:mostRanks], s) })
	}
	for _, s := range leads {
		p.drawing.Add(s.String(), p.rankCurves(s, false))
	}
}

// sumOfRunning says how busy a place was in all.
func sumOfRunning(s *load.Series) float64 {
	sum := 0.0
	for i := range s.Points {
		if v := s.Points[i].Running; !math.IsNaN(v) {
			sum += v
		}
	}
	return sum
}

func (p *timelinePrinter) wholeCurves(s *load.Series) []curves.Curve {
	list := []curves.Curve{
		p.rate(s, "arrivals", func(q *load.Point) int64 { return q.Arrivals }),
		p.level(s, "under way", "", func(q *load.Point) float64 { return q.Running }),
		p.rate(s, "output tokens", func(q *load.Point) int64 { return q.Output }),
		p.rate(s, "prompt tokens", func(q *load.Point) int64 { return q.Prefill }),
	}
	if s.Good != nil {
		list = append(list, goodput(s))
	}
	list = append(list, p.spread("ttft", s.TTFT)...)
	return append(list, p.spread("tpot", s.TPOT)...)
}

// goodput is the share of the requests that arrived and met the SLO.
func goodput(s *load.Series) curves.Curve {
	c := curves.Curve{Name: "goodput", Unit: "%", Size: 1}
	for _, g := range s.Good {
		c.Values = append(c.Values, distribution.Ratio(100*float64(g.Met), float64(g.Judged)))
	}
	return c
}

// rankCurves are those of a role or a rank; full ones have the tails of the
// stages, too.
func (p *timelinePrinter) rankCurves(s *load.Series, full bool) []curves.Curve {
	list := []curves.Curve{
		p.level(s, "share of arrivals", "%", func(q *load.Point) float64 { return 100 * q.Share }),
		p.level(s, "running", "", func(q *load.Point) float64 { return q.Running }),
		p.level(s, "imbalance", "max/mean", func(q *load.Point) float64 { return q.Imbalance }),
		p.level(s, "queued", "", func(q *load.Point) float64 { return q.Queued }),
		p.level(s, "transferring", "", func(q *load.Point) float64 { return q.Transferring }),
		p.level(s, "busy", "%", func(q *load.Point) float64 { return 100 * q.Busy }),
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
		p.drawing.Notes = append(p.drawing.Notes, fmt.Sprintf("not drawn, as always below 1 ms: %s of %s", strings.Join(brief, ", "), s.Role))
	}
	return list
}

// negligible reports whether a stage never takes as long as 1 ms.
func negligible(spreads []load.Spread) bool {
	return !slices.ContainsFunc(spreads, func(s load.Spread) bool { return s.P99 >= 1_000_000 })
}

func (p *timelinePrinter) rate(s *load.Series, name string, of func(*load.Point) int64) curves.Curve {
	c := curves.Curve{Name: name, Unit: "/s", Size: 1}
	for b := range s.Points {
		c.Values = append(c.Values, p.PerSecond(b, of(&s.Points[b])))
	}
	return c
}

func (p *timelinePrinter) level(s *load.Series, name, unit string, of func(*load.Point) float64) curves.Curve {
	c := curves.Curve{Name: name, Unit: unit, Size: 1}
	for b := range s.Points {
		c.Values = append(c.Values, of(&s.Points[b]))
	}
	return c
}

// spread makes the curves of the median and of the tail.
func (p *timelinePrinter) spread(name string, spreads []load.Spread) []curves.Curve {
	if spreads == nil {
		return nil
	}
	median, tail := curves.Curve{Name: name + " p50"}, curves.Curve{Name: strings.Repeat(" ", len(name)) + " p99", Peaks: true}
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
	return []curves.Curve{median, tail}
}
