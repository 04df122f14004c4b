package gaps

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Reports returns the tables: the time of gaps by cause, the longest ones, and what followed
// calls that let devices run dry.
func (g *Gaps) Reports() []*table.Table {
	return []*table.Table{g.causeReport(), g.longestReport(), g.drainedReport()}
}

// causeReport makes the table of causes. Its times add up to the time of all gaps.
func (g *Gaps) causeReport() *table.Table {
	fields := append(g.rankFields(),
		table.NsColumn("time", "total over devices", func(c *Cause) int64 { return c.Time }),
		table.PartColumn("share", "share of the time of all gaps", func(c *Cause) (int64, int64) { return c.Time, c.all }),
		table.CountColumn("gaps", "number of gaps that include this cause", func(c *Cause) int64 { return c.Gaps }),
		table.NsColumn("max", "longest time in a single gap", func(c *Cause) int64 { return c.LongestPart }),
		table.Field[Cause]{Column: table.Column{Name: "samples", Unit: table.Count, Detail: !g.saw.Samples, Doc: "number of samples of the thread that show this; empty if none is needed"},
			Cell: func(c *Cause) table.Cell { return table.Cell{N: c.Samples, Unknown: c.Samples == 0} }})
	fields = append(fields, causeFields(func(c *Cause) *Cause { return c }, len(g.pauses) > 0)...)
	t := table.New("sgtrace.report.gaps/v1", "Why GPUs were idle, and what the host did", g.Causes, fields)
	t.Stay("time", "share", "did").Leave("gaps", "max")
	if len(g.Causes) == 0 {
		if g.none {
			t.Note("no GPU ran two kernels or copies, so nothing tells when one was idle; 'sgtrace inspect' lists what there is")
		} else {
			t.Note("no GPU was idle between kernels or copies; 'sgtrace inspect' lists what is in the inputs")
		}
	}
	g.noteMissing(t)
	return t
}

// longestReport makes the table of the longest gaps.
func (g *Gaps) longestReport() *table.Table {
	fields := []table.Field[Gap]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(g *Gap) string { return g.Rank }),
		table.CountColumn("device", "device number within the process", func(g *Gap) int64 { return int64(g.Device) }).InDetail(),
		table.TimeColumn("from", "when the device went idle", func(g *Gap) trace.Time { return g.Gap.From }),
		table.NsColumn("gap", "length of the gap", func(g *Gap) int64 { return g.Gap.Length() }),
	}
	fields = append(fields, causeFields(func(g *Gap) *Cause { return &g.Cause }, len(g.pauses) > 0)...)
	none := !slices.ContainsFunc(g.Longest, func(l Gap) bool { return l.After != "" })
	for _, f := range [...]table.Field[Gap]{
		table.TextColumn("graph ran before", "for a gap within a CUDA graph, what the graph ran last before it: operator and module at capture, else the kernel", func(g *Gap) string { return g.Before }),
		table.TextColumn("graph ran after", "what the graph ran next after the gap", func(g *Gap) string { return g.After }),
	} {
		f.Most, f.Detail = table.MaxName, none
		fields = append(fields, f)
	}
	return table.New("sgtrace.report.gaps.longest/v1", "Longest gaps, each with the cause of most of it", g.Longest, fields).Stay("gap", "did")
}

// drainedReport makes the table of calls that let devices run dry.
func (g *Gaps) drainedReport() *table.Table {
	fields := append(g.rankFields(),
		table.NsColumn("time", "idle time after the call, total over devices", func(c *Cause) int64 { return c.Time }),
		table.PartColumn("share", "share of the time of all gaps", func(c *Cause) (int64, int64) { return c.Time, c.all }),
		table.CountColumn("calls", "number of calls that let a device go idle", func(c *Cause) int64 { return c.Gaps }),
		table.NsColumn("max", "longest gap after one call", func(c *Cause) int64 { return c.LongestPart }))
	fields = append(fields, siteFields(func(c *Cause) *Cause { return c })...)
	return table.New("sgtrace.report.gaps.syncs/v1", "Calls that waited until the GPU had run dry", g.Drained, fields).Stay("time", "share").Leave("max")
}

// rankFields name the rank of a cause, where ranks are not pooled.
func (g *Gaps) rankFields() []table.Field[Cause] {
	if !g.byRank {
		return nil
	}
	return []table.Field[Cause]{table.TextColumn("rank", "rank, or name of a process that is not a rank", func(c *Cause) string { return c.Rank })}
}

// causeFields say why a device was idle and what the host did.
func causeFields[T any](of func(*T) *Cause, paused bool) []table.Field[T] {
	pause := table.TextColumn("pause", "yes if the thread began and ended nothing for at least 20 times the median delay of its late launches", func(row *T) string { return of(row).pauses() })
	pause.Detail = !paused
	fields := []table.Field[T]{
		table.TextColumn("idle", "reason for the idle time, as in gpu.time", func(row *T) string { return gpu.ReasonWords[of(row).Reason] }),
		table.TextColumn("did", "activity of the thread that launched the next work or caused the gap", func(row *T) string { return of(row).Activity.String() }),
	}
	return append(append(fields, siteFields(of)...), pause)
}

// pauses returns the cell of a cause in the column pause.
func (c *Cause) pauses() string {
	if c.Pause {
		return "yes"
	}
	return ""
}

// siteFields say where in the code a thread was.
func siteFields[T any](of func(*T) *Cause) []table.Field[T] {
	text := func(name, doc string, get func(*Cause) string) table.Field[T] {
		return table.TextColumn(name, doc, func(row *T) string { return get(of(row)) }).InDetail()
	}
	where := table.TextColumn("where", "innermost call, operator, and Python function, shortened", func(row *T) string { return of(row).Where() })
	where.Most = table.MaxName
	return []table.Field[T]{
		where,
		text("call", "innermost call into CUDA or the operating system", func(c *Cause) string { return c.Call }),
		text("operator", "operator that the Python code called", func(c *Cause) string { return c.Operator }),
		text("function", "built-in or library Python function that frame called; without frame, the innermost one", func(c *Cause) string { return c.Function }),
		text("frame", "innermost Python function outside of libraries", func(c *Cause) string { return c.Frame }),
		text("range", "innermost NVTX range or annotation; steps are grouped by kind", func(c *Cause) string { return c.Range }),
		text("other thread", "what another thread of the process did at that time", func(c *Cause) string { return c.Other }),
	}
}

// Where says where the thread was: "cudaStreamSynchronize under aten::item in sample()
// (scheduler.py:2210)". It is "" if nothing shows it.
func (c *Cause) Where() string {
	var b strings.Builder
	add := func(joined, name string) {
		if name == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString(joined)
		}
		b.WriteString(name)
	}
	add("", c.Call)
	add(" under ", c.Operator)
	if c.Operator == "" {
		add(" under ", host.Short(c.Function))
	}
	add(" in ", host.Short(c.Frame))
	if c.Frame == "" {
		add(" in ", c.Range)
	}
	if c.Other != "" {
		add(" while another thread is in ", host.Short(c.Other))
	}
	return b.String()
}

// noteMissing says what was not recorded, and what would record it.
func (g *Gaps) noteMissing(t *table.Table) {
	if g.Late == 0 {
		return
	}
	for _, text := range g.Recorded.Missing(&g.saw, g.export) {
		t.Note("%s", text)
	}
}
