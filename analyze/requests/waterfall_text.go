package requests

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Write draws the waterfall as text: the facts about the request, one line per stage with a bar on a common time
// axis, the gaps between tokens, and what is doubtful. Times are in ms from the start of the request.
func (w *Waterfall) Write(out io.Writer, style table.Style) error {
	p := &waterfallPrinter{Waterfall: w, out: bufio.NewWriter(out), style: style}
	p.measure()
	p.header()
	p.axis()
	part := request.None - 1
	for i := range w.Lanes {
		if l := &w.Lanes[i]; l.Part != part || l.Part == request.None {
			part = l.Part
			p.partHeader(l)
		}
		p.lane(&w.Lanes[i])
	}
	p.footer()
	return p.out.Flush()
}

type waterfallPrinter struct {
	*Waterfall
	out   *bufio.Writer
	style table.Style
	name  int // width of the names
	bar   int // width of the bars
}

const (
	timeWidth = 11 // of a time in ms

)

// measure divides the width between names and bars. Names are only cut on a terminal, and only if no bar would fit
// next to them.
func (p *waterfallPrinter) measure() {
	p.name = len("unaccounted")
	for _, l := range p.Lanes {
		for _, r := range l.Rows {
			p.name = max(p.name, twwidth.Width(rowLabel(r)))
		}
	}
	width := p.style.Width
	if width <= 0 {
		width = table.DefaultWidth
	} else {
		p.name = min(p.name, max(table.MinName, width-2*timeWidth-table.MinBar-4))
	}
	p.bar = max(table.MinBar, width-2*timeWidth-p.name-4)
}

// rowLabel returns the name of a row, indented below its parent.
func rowLabel(r Row) string {
	const deepest = 20 // nobody follows more levels, and forged input may have any number
	label := strings.Repeat("  ", 1+min(r.Depth, deepest)) + words.Clean(r.Name)
	if r.Steps.N > 1 {
		label += fmt.Sprintf(" x%d", r.Steps.N)
	}
	return label
}

func (p *waterfallPrinter) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// filled prints text behind a head, wrapped if it is too long for one line.
func (p *waterfallPrinter) filled(head, text string) { table.WriteFilled(p.out, p.style, head, text) }

// ms formats ns as ms to the microsecond.
func ms(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e6) }

func (p *waterfallPrinter) header() {
	r := p.Request
	p.printf("request %s\n", words.Clean(p.set.Text(r.RID)))
	fact := func(name, value string) {
		if value != "" {
			p.printf("  %-12s%s\n", name, words.Clean(value))
		}
	}
	status := r.Status.String()
	if r.Reason != 0 {
		status += ": " + p.set.Syms.Name(r.Reason)
	}
	fact("status", status)
	fact("start", words.Instant(r.Start))
	fact("roles", p.set.RolesOf(r))
	fact("room", p.set.Text(r.Room))
	fact("model", p.set.ModelOf(r))
	fact("flags", r.Flags.String())
	fact("tokens", tokenCounts(&r.Metrics))
	p.printf("\n")
	for _, m := range metric.Requests {
		if v := m.Of(&r.Metrics); v != request.Unknown && m != metric.ITL { // steps show each gap
			p.filled(fmt.Sprintf("  %-12s%*s ms  ", m.Name, timeWidth, ms(v)), m.Doc)
		}
	}
	p.printf("\n")
}

// tokenCounts lists the known counts.
func tokenCounts(m *request.Metrics) string {
	var counts []string
	for _, c := range []struct {
		what string
		n    int64
	}{{"prompt", m.PromptTokens}, {"cached", m.CachedTokens}, {"generated", m.CompletionTokens}} {
		if c.n != request.Unknown {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if m.Retractions > 0 {
		counts = append(counts, words.Counted(int(m.Retractions), "retraction"))
	}
	return strings.Join(counts, ", ")
}

// axis prints the column headings, with the ends of the time axis.
func (p *waterfallPrinter) axis() {
	from, to := ms(int64(p.From-p.Request.Start)), ms(int64(p.To-p.Request.Start))
	p.printf("%*s%*s  %-*s  %s%*s\n", timeWidth, "start [ms]", timeWidth, "time [ms]", p.name, "stage",
		from, max(1, p.bar-len(from)), to)
}

// partHeader prints which server the lanes below belong to.
func (p *waterfallPrinter) partHeader(l *Lane) {
	if l.Part == request.None {
		p.printf("gateway\n")
		return
	}
	part := &p.set.Parts[l.Part]
	facts := []string{part.Role.String()}
	if part.RID != 0 {
		facts = append(facts, "rid "+words.Clean(p.set.Text(part.RID)))
	}
	if part.FullID != 0 && p.set.Text(part.FullID) != p.set.Text(part.RID) && p.set.Text(part.FullID) != p.set.Text(p.Request.RID) {
		facts = append(facts, "id "+words.Clean(p.set.Text(part.FullID)))
	}
	if part.Root != request.None {
		facts = append(facts, fmt.Sprintf("span %s ms at %s", ms(int64(part.End-part.Start)), ms(int64(part.Start-p.Request.Start))))
	} else {
		facts = append(facts, "request span missing")
	}
	if part.FinishReason != 0 {
		facts = append(facts, "finish "+words.Clean(p.set.Syms.Name(part.FinishReason)))
	}
	p.filled("", strings.Join(facts, ", "))
}

func (p *waterfallPrinter) lane(l *Lane) {
	title := words.Clean(l.Host + " " + l.Name)
	if l.Proc != request.None && p.set.Procs[l.Proc].PID != 0 {
		title += naming.Separator + fmt.Sprintf("pid %d", p.set.Procs[l.Proc].PID)
	}
	for _, e := range l.Events {
		title += fmt.Sprintf(", %d %s", e.N, words.Clean(e.Name))
	}
	p.filled("  ", title)
	if l.Reason != "" {
		p.printf("%*s  ended with: %s\n", 2*timeWidth, "", words.Clean(l.Reason))
	}
	for _, row := range l.Rows {
		p.row(row)
	}
	if l.Tokens != nil {
		p.tokens(l.Tokens)
	}
}

func (p *waterfallPrinter) row(r Row) {
	from, to := r.Spans[0].From, r.Spans[0].To
	for _, iv := range r.Spans {
		from, to = min(from, iv.From), max(to, iv.To)
	}
	p.line(from, int64(to-from), rowLabel(r), r.Spans)
	if r.Steps.N > 1 {
		p.detail("each p50 %s, p99 %s, max %s ms", ms(r.Steps.P50), ms(r.Steps.P99), ms(r.Steps.Max))
	}
}

// line prints one line of the chart.
func (p *waterfallPrinter) line(from trace.Time, dur int64, name string, spans []request.Interval) {
	if p.style.Width > 0 {
		name = table.CutMiddle(name, p.name, p.style)
	}
	pad := strings.Repeat(" ", max(0, p.name-twwidth.Width(name)))
	line := fmt.Sprintf("%*s%*s  %s%s  %s", timeWidth, ms(int64(from-p.Request.Start)), timeWidth, ms(dur), name, pad, p.bars(spans))
	p.printf("%s\n", strings.TrimRight(line, " "))
}

// detail prints a remark below a line of the chart.
func (p *waterfallPrinter) detail(format string, args ...any) {
	p.filled(strings.Repeat(" ", 2*timeWidth+6), fmt.Sprintf(format, args...))
}

func (p *waterfallPrinter) tokens(t *Tokens) {
	g := &t.Gaps
	p.detail("%d token gaps: p50 %s, p90 %s, p99 %s, max %s ms", g.N, ms(g.P50), ms(g.P90), ms(g.P99), ms(g.Max))
	for _, o := range t.Outliers {
		batch := ""
		if o.Batch != request.Unknown {
			batch = fmt.Sprintf(", batch of %d", o.Batch)
		}
		p.detail("long gap of %s ms at %s%s", ms(o.Dur), ms(int64(o.Start-p.Request.Start)), batch)
	}
}

// footer prints the time that no stage covers, and what is doubtful.
func (p *waterfallPrinter) footer() {
	if len(p.Holes) > 0 {
		p.line(p.Holes[0].From, p.Request.Metrics.Unaccounted, "unaccounted", p.Holes)
	}
	if len(p.ClockNotes) == 0 {
		return
	}
	p.printf("\n")
	p.filled("", "the clocks of the hosts differ, so bars of different hosts are shifted against each other:")
	for _, n := range p.ClockNotes {
		p.filled("  ", words.Clean(n))
	}
}

// Glyphs for a cell of a bar, by the fraction of it that is covered.
var (
	blocks = []string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}
	ascii  = []string{" ", ".", "-", "=", "#"}
)

// bars draws spans on the time axis. A span of zero length is still visible.
func (p *waterfallPrinter) bars(spans []request.Interval) string {
	glyphs := blocks
	if p.style.ASCII {
		glyphs = ascii
	}
	covered := make([]float64, p.bar) // by cell, 0 to 1
	shown := make([]bool, p.bar)
	length := max(1, float64(p.To-p.From))
	place := func(t trace.Time) float64 { return float64(t-p.From) / length * float64(p.bar) }
	for _, iv := range spans {
		from, to := place(iv.From), place(iv.To)
		for cell := min(int(from), p.bar-1); cell < p.bar && (float64(cell) < to || cell == int(from)); cell++ {
			covered[cell] += max(0, min(to, float64(cell+1))-max(from, float64(cell)))
			shown[cell] = true
		}
	}
	var b strings.Builder
	for cell, c := range covered {
		glyph := int(c*float64(len(glyphs)-1) + 0.5)
		if shown[cell] {
			glyph = max(1, glyph)
		}
		b.WriteString(glyphs[min(glyph, len(glyphs)-1)])
	}
	return b.String()
}
