package host

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// titles and what say what the tables are of.
var (
	titles = [numOf]string{CPU: "CPU time by stack", GPU: "GPU time by the stack that launched it"}
	names  = [numOf]string{CPU: "cpu", GPU: "gpu"}
	selves = [numOf]string{CPU: "time of threads in the innermost frame", GPU: "time of the kernel or copy"}
)

// Reports returns the tables: where the time of threads went, and that of devices.
func (s *Stacks) Reports() []*table.Table { return []*table.Table{s.report(CPU), s.report(GPU)} }

func (s *Stacks) report(of TimeOf) *table.Table {
	row := func(at *int32) Row { return Row{s, of, *at} }
	text := func(name, doc string, cell func(Row) string) table.Field[int32] {
		return table.TextColumn(name, doc, func(at *int32) string { return cell(row(at)) })
	}
	ns := func(name, doc string, cell func(Row) int64) table.Field[int32] {
		return table.NsColumn(name, doc, func(at *int32) int64 { return cell(row(at)) })
	}
	var fields []table.Field[int32]
	if s.byRank {
		fields = append(fields, text("rank", "rank, or process that is none", func(r Row) string { return r.names(0)[0] }))
	}
	fields = append(fields,
		table.ShareColumn("time", "self as part of that of all rows; of waits, unknown", func(at *int32) float64 {
			if s.tree.nodes[*at].isIdle() {
				return math.NaN()
			}
			return distribution.Fraction(row(at).self(), s.totals[of][bottom])
		}),
		ns("self", selves[of], Row.self))
	if of == CPU {
		fields = append(fields,
			ns("total", "self, and time in frames that are entered from there, without waits", func(r Row) int64 { return s.totals[of][r.at] }),
			text("did", "what the thread did in the innermost frame", func(r Row) string { return r.activity().String() }))
	}
	frame := text("frame", "the innermost frame", func(r Row) string { return Short(s.name(r.at)) })
	callers := text("callers", "the frames around it, the innermost first", Row.callers)
	stack := text("stack", "all frames, the outermost first, joined by semicolons", func(r Row) string { return table.FoldStack(r.names(0)) })
	frame.Most, callers.Most, stack.Detail = maxFrame, table.MaxName, true
	t := table.New(fmt.Sprintf("sgtrace.report.stacks.%s/v1", names[of]), titles[of], s.rows[of], append(fields, frame, callers, stack))
	t.Folding = &table.Folding{Stack: "stack", Weight: "self"}
	s.note(t, of)
	return t
}

// maxFrame is how wide the innermost frame is for people, who see callers beside it.
const maxFrame = 50

// note says what the rows leave out, and what was not recorded.
func (s *Stacks) note(t *table.Table, of TimeOf) {
	switch {
	case of == CPU && s.Waited > 0:
		t.Note("threads waited %s, in the last rows (lock, waiting): shares are without this; in stacks, it is the frame (idle)", table.InWords(s.Waited))
	case of == GPU && !s.work:
		t.Note("no kernels or copies were recorded")
		return
	}
	for _, text := range s.Missing() {
		t.Note("%s", text)
	}
	if of == GPU {
		profilewalk.NoteGraphs(t, s.graphs)
	}
}
