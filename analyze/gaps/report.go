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
		table.NsColumn("time", "sum over devices", func(c *Cause) int64 { return c.Time }),
		table.PartColumn("share", "part of the time of all gaps", func(c *Cause) (int64, int64) { return c.Time, c.all }),
		table.CountColumn("gaps", "how many gaps have a part of it", func(c *Cause) int64 { return c.Gaps }),
		table.NsColumn("max", "longest time in one gap", func(c *Cause) int64 { return c.LongestPart }),
		table.Field[Cause]{Column: table.Column{Name: "samples", Unit: table.Count, Detail: !g.saw.Samples, Doc: "how many samples of the thread tell so, each for no more than the time between two"},
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
		table.TextColumn("rank", "rank, or process that is none", func(g *Gap) string { return g.Rank }),
		table.CountColumn("device", "device, as the process numbers it", func(g *Gap) int64 { return int64(g.Device) }).InDetail(),
		table.TimeColumn("from", "when the device ran dry", func(g *Gap) trace.Time { return g.Gap.From }),
		table.NsColumn("gap", "how long it ran nothing", func(g *Gap) int64 { return g.Gap.Length() }),
	}
	fields = append(fields, causeFields(func(g *Gap) *Cause { return &g.Cause }, len(g.pauses) > 0)...)
	none := !slices.ContainsFunc(g.Longest, func(l Gap) bool { return l.After != "" })
	for _, f := range [...]table.Field[Gap]{
		table.TextColumn("graph ran before", "what ran last in the CUDA graph that the gap is in: operator and module at capture, or else the kernel", func(g *Gap) string { return g.Before }),
		table.TextColumn("graph ran after", "what the graph ran next", func(g *Gap) string { return g.After }),
	} {
		f.Most, f.Detail = table.MaxName, none
		fields = append(fields, f)
	}
	return table.New("sgtrace.report.gaps.longest/v1", "Longest gaps, each with the cause of most of it", g.Longest, fields).Stay("gap", "did")
}

// drainedReport makes the table of calls that let devices run dry.
func (g *Gaps) drainedReport() *table.Table {
	fields := append(g.rankFields(),
		table.NsColumn("time", "idle time after the call, sum over devices", func(c *Cause) int64 { return c.Time }),
		table.PartColumn("share", "part of the time of all gaps", func(c *Cause) (int64, int64) { return c.Time, c.all }),
		table.CountColumn("calls", "how many of the calls let a device run dry", func(c *Cause) int64 { return c.Gaps }),
		table.NsColumn("max", "longest gap after one", func(c *Cause) int64 { return c.LongestPart }))
	fields = append(fields, siteFields(func(c *Cause) *Cause { return c })...)
	return table.New("sgtrace.report.gaps.syncs/v1", "Calls that waited until the GPU had run dry", g.Drained, fields).Stay("time", "share").Leave("max")
}

// rankFields name the rank of a cause, where ranks are not pooled.
func (g *Gaps) rankFields() []table.Field[Cause] {
	if !g.byRank {
		return nil
	}
	return []table.Field[Cause]{table.TextColumn("rank", "rank, or process that is none", func(c *Cause) string { return c.Rank })}
}

// causeFields say why a device was idle and what the host did.
func causeFields[T any](of func(*T) *Cause, paused bool) []table.Field[T] {
	pause := table.TextColumn("pause", "yes: that thread began and ended nothing for 20 times as long as launches are late in the median, or longer", func(row *T) string { return of(row).pauses() })
	pause.Detail = !paused
	fields := []table.Field[T]{
		table.TextColumn("idle", "reason of the idle time", func(row *T) string { return gpu.ReasonWords[of(row).Reason] }),
		table.TextColumn("did", "what the thread did that launched next, or that is to blame", func(row *T) string { return of(row).Activity.String() }),
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
	where := table.TextColumn("where", "innermost call, operator and Python function, shortened", func(row *T) string { return of(row).Where() })
	where.Most = table.MaxName
	return []table.Field[T]{
		where,
		text("call", "innermost call into CUDA or the operating system", func(c *Cause) string { return c.Call }),
		text("operator", "operator that the code called", func(c *Cause) string { return c.Operator }),
		text("function", "Python function, built in or of a library, that frame called; the innermost one where there is no frame", func(c *Cause) string { return c.Function }),
		text("frame", "innermost Python function that is of no library", func(c *Cause) string { return c.Frame }),
		text("range", "innermost NVTX range or annotation; steps by kind", func(c *Cause) string { return c.Range }),
		text("other thread", "what another thread of the process did meanwhile", func(c *Cause) string { return c.Other }),
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
