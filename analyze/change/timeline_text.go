package change

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Write draws the timeline as text: a block per place and a line per metric, as a
// curve over the buckets with its lowest and highest value. Ranks that do the
// same work side by side are one block, as their lead rank has it.
func (t MarkedTimeline) Write(out io.Writer, style table.Style) error {
	p := &timelinePrinter{MarkedTimeline: t, out: bufio.NewWriter(out), style: style}
	p.blocks()
	p.measure()
	p.header()
	for i := range p.found {
		p.block(&p.found[i])
	}
	p.footer()
	return p.out.Flush()
}

type timelinePrinter struct {
	MarkedTimeline
	out   *bufio.Writer
	style table.Style
	found []curveBlock
	notes []string
	name  int // width of the names
	plot  int // columns of the curves
}

// A curveBlock is what is drawn of a place.
type curveBlock struct {
	title  string
	curves []curve
}

// A curve is a metric over the buckets; NaN is unknown.
type curve struct {
	name   string
	values []float64
	unit   string
	size   float64 // of the unit
	peaks  bool    // when several buckets share a column, the highest counts, not the mean
}

// mostRanks is how many lead ranks of a role are drawn.
const mostRanks = 8

// blocks chooses what is drawn.
func (p *timelinePrinter) blocks() {
	for i := 0; i < len(p.Series); {
		s := &p.Series[i]
		i++
		if s.Scope == place.Everywhere {
			p.add(s.String(), p.wholeCurves(s))
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
		p.add(fmt.Sprintf("%s, %s", leads[0], words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
		return
	}
	p.add(fmt.Sprintf("%s, %d lead ranks of %s", role, len(leads), words.Counted(len(ranks), "rank")), p.rankCurves(role, true))
	if len(leads) > mostRanks {
		busiest := slices.Clone(leads)
		slices.SortStableFunc(busiest, func(x, y *load.Series) int { return cmp.Compare(sumOfRunning(y), sumOfRunning(x)) })
		p.notes = append(p.notes, fmt.Sprintf("of the %d lead ranks of %s the %d with most running requests are drawn; CSV and JSON have all",
			len(leads), role, mostRanks))
		leads = slices.DeleteFunc(leads, func(s *load.Series) bool { return !slices.Contains(busiest[:mostRanks], s) })
	}
	for _, s := range leads {
		p.add(s.String(), p.rankCurves(s, false))
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

func (p *timelinePrinter) add(title string, curves []curve) {
	p.found = append(p.found, curveBlock{title, slices.DeleteFunc(curves, func(c curve) bool { return !c.any() })})
}

// any reports whether there is anything to see.
func (c *curve) any() bool {
	return slices.ContainsFunc(c.values, func(v float64) bool { return v > 0 })
}

func (p *timelinePrinter) wholeCurves(s *load.Series) []curve {
	curves := []curve{
		p.rate(s, "arrivals", func(q *load.Point) int64 { return q.Arrivals }),
		p.level(s, "under way", "", func(q *load.Point) float64 { return q.Running }),
		p.rate(s, "output tokens", func(q *load.Point) int64 { return q.Output }),
		p.rate(s, "prompt tokens", func(q *load.Point) int64 { return q.Prefill }),
	}
	if s.Good != nil {
		curves = append(curves, goodput(s))
	}
	curves = append(curves, p.spread("ttft", s.TTFT)...)
	return append(curves, p.spread("tpot", s.TPOT)...)
}

// goodput is the share of the requests that arrived and met the SLO.
func goodput(s *load.Series) curve {
	c := curve{name: "goodput", unit: "%", size: 1}
	for _, g := range s.Good {
		c.values = append(c.values, distribution.Ratio(100*float64(g.Met), float64(g.Judged)))
	}
	return c
}

// rankCurves are those of a role or a rank; full ones have the tails of the
// stages, too.
func (p *timelinePrinter) rankCurves(s *load.Series, full bool) []curve {
	curves := []curve{
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
			curves = append(curves, stage...)
		default:
			curves = append(curves, stage[0])
		}
	}
	if len(brief) > 0 && full {
		p.notes = append(p.notes, fmt.Sprintf("not drawn, as always below 1 ms: %s of %s", strings.Join(brief, ", "), s.Role))
	}
	return curves
}

// negligible reports whether a stage never takes as long as 1 ms.
func negligible(spreads []load.Spread) bool {
	return !slices.ContainsFunc(spreads, func(s load.Spread) bool { return s.P99 >= 1_000_000 })
}

func (p *timelinePrinter) rate(s *load.Series, name string, of func(*load.Point) int64) curve {
	c := curve{name: name, unit: "/s", size: 1}
	for b := range s.Points {
		c.values = append(c.values, p.PerSecond(b, of(&s.Points[b])))
	}
	return c
}

func (p *timelinePrinter) level(s *load.Series, name, unit string, of func(*load.Point) float64) curve {
	c := curve{name: name, unit: unit, size: 1}
	for b := range s.Points {
		c.values = append(c.values, of(&s.Points[b]))
	}
	return c
}

// spread makes the curves of the median and of the tail.
func (p *timelinePrinter) spread(name string, spreads []load.Spread) []curve {
	if spreads == nil {
		return nil
	}
	median, tail := curve{name: name + " p50"}, curve{name: strings.Repeat(" ", len(name)) + " p99", peaks: true}
	var medians, tails []int64
	for _, s := range spreads {
		if s.N == 0 {
			median.values, tail.values = append(median.values, math.NaN()), append(tail.values, math.NaN())
			continue
		}
		medians, tails = append(medians, s.P50), append(tails, s.P99)
		median.values, tail.values = append(median.values, float64(s.P50)), append(tail.values, float64(s.P99))
	}
	median.unit, median.size = words.UnitFor(slices.Max(medians))
	tail.unit, tail.size = words.UnitFor(slices.Max(tails))
	return []curve{median, tail}
}

// Widths of the columns beside the curves.
const (
	unitWidth  = 8
	valueWidth = 7
)

// measure divides the width among names and curves: every bucket has as many
// columns as there is room for, or several share one.
func (p *timelinePrinter) measure() {
	p.name = len("changes")
	for _, b := range p.found {
		for _, c := range b.curves {
			p.name = max(p.name, len(c.name))
		}
	}
	width := p.style.Width
	if width <= 0 {
		width = table.DefaultWidth
	}
	p.plot = max(table.MinBar, width-2-p.name-1-unitWidth-1-2*(valueWidth+1))
	if n := p.Buckets(); n > 0 && n <= p.plot {
		p.plot = p.plot / n * n
	}
}

// column returns the first column of bucket b.
func (p *timelinePrinter) column(b int) int { return b * p.plot / max(1, p.Buckets()) }

func (p *timelinePrinter) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// row prints the name of a curve, what is drawn of it, and what stands behind.
func (p *timelinePrinter) row(name, unit, drawn, least, most string) {
	pad := strings.Repeat(" ", max(0, p.plot-twwidth.Width(drawn)))
	line := fmt.Sprintf("  %-*s %-*s %s%s %*s %*s", p.name, name, unitWidth, unit, drawn, pad, valueWidth, least, valueWidth, most)
	p.printf("%s\n", strings.TrimRight(line, " "))
}

func (p *timelinePrinter) header() {
	n := p.Buckets()
	if n == 0 {
		p.printf("Timeline: no requests\n")
		return
	}
	requests := int64(0)
	for i := range p.Series[0].Points {
		requests += p.Series[0].Points[i].Arrivals
	}
	p.printf("Timeline: %s from %s to %s UTC, %s of %s\n\n", words.Counted(int(requests), "request"),
		words.Clock(p.From).Format(words.DateLayout), words.Clock(p.To).Format(words.ClockLayout), words.Counted(n, "bucket"), words.Nearly(p.Bucket))
	p.row("", "", p.axis(), "least", "most")
	if p.Changes != nil {
		if marks := p.marks(); marks != "" {
			p.row("changes", "", marks, "", "")
		}
	}
}

// axis returns a ruler with times at both ends, and in the middle if there is
// room.
func (p *timelinePrinter) axis() string {
	layout := "15:04:05"
	if p.Bucket%int64(time.Second) != 0 {
		layout = words.ClockLayout
	}
	at := func(b int) string { return words.Clock(p.Start + trace.Time(int64(b)*p.Bucket)).Format(layout) }
	ruler := []byte(strings.Repeat(" ", p.plot))
	write := func(column int, text string) {
		for i := range len(text) {
			if column+i >= 0 && column+i < len(ruler) {
				ruler[column+i] = text[i]
			}
		}
	}
	n := p.Buckets()
	write(0, at(0))
	const apart = 2 // columns between them
	end, middle := at(n), at(n/2)
	if len(middle)+apart > p.plot-len(end) {
		return strings.TrimRight(string(ruler), " ")
	}
	write(p.plot-len(end), end)
	if at := p.column(n / 2); at >= len(middle)+apart && at+len(middle)+apart <= p.plot-len(end) {
		write(at, middle)
	}
	return string(ruler)
}

// marks returns a line with the numbers of the changes where they happened.
func (p *timelinePrinter) marks() string {
	line := []byte(strings.Repeat(" ", p.plot))
	for i := range p.Changes.List {
		c := &p.Changes.List[i]
		b := int(int64(c.Time-p.Start) / p.Bucket)
		if b < 0 || b >= p.Buckets() {
			continue
		}
		mark := byte('+') // there is room for one digit
		if i < 9 {
			mark = byte('1' + i)
		}
		column := p.column(b)
		for column < p.plot-1 && line[column] != ' ' {
			column++ // several in one bucket
		}
		line[column] = mark
	}
	return strings.TrimRight(string(line), " ")
}

func (p *timelinePrinter) block(b *curveBlock) {
	p.printf("%s\n", words.Clean(b.title))
	for i := range b.curves {
		c := &b.curves[i]
		least, most := c.extremes()
		p.row(c.name, c.unit, p.draw(c, most), words.ThreeDigits(least/c.size), words.ThreeDigits(most/c.size))
	}
}

// extremes returns the lowest and the highest known value.
func (c *curve) extremes() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range c.values {
		if !math.IsNaN(v) {
			least, most = min(least, v), max(most, v)
		}
	}
	return least, most
}

// Glyphs of a curve, from 0 to its highest value.
var (
	levels      = []rune("▁▂▃▄▅▆▇█")
	asciiLevels = []rune(".:-=+*#@")
)

// draw returns the curve, from zero to most; what is unknown stays blank.
func (p *timelinePrinter) draw(c *curve, most float64) string {
	glyphs := levels
	if p.style.ASCII {
		glyphs = asciiLevels
	}
	n := len(c.values)
	var b strings.Builder
	for column := range p.plot {
		from, to := column*n/p.plot, max(column*n/p.plot+1, (column+1)*n/p.plot)
		v := joint(c.values[from:to], c.peaks)
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		level := int(v / most * float64(len(glyphs)))
		b.WriteRune(glyphs[min(max(level, 0), len(glyphs)-1)])
	}
	return b.String()
}

// joint returns the highest or the mean of the known values.
func joint(values []float64, highest bool) float64 {
	sum, n, most := 0.0, 0.0, math.NaN()
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if sum, n = sum+v, n+1; math.IsNaN(most) || v > most {
			most = v
		}
	}
	if highest {
		return most
	}
	return distribution.Ratio(sum, n)
}

// footer prints the notes.
func (p *timelinePrinter) footer() {
	for i, note := range append(p.notes, p.Timeline.Notes()...) {
		if i == 0 {
			p.printf("\n")
		}
		p.printf("note: %s\n", words.Clean(note))
	}
}
