package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Overview makes the page of an overview: its findings, and a section for each kind of data. shorten replaces the
// tables of captures with very many ranks by ones with fewer rows; if nil, tables stay as they are.
func Overview(o *overview.Overview, made Provenance, shorten func([]*table.Table)) (Page, error) {
	src := Source{o.Select, o.Inputs}
	p := Page{Title: Title(o.Inputs), Subtitle: subtitle(o), Tiles: Tiles(o), Provenance: made}
	var sections []Section
	var timeline *load.Timeline
	if o.Requests != nil {
		p.RequestCommands = []string{src.requestCommand("RID"), src.aroundCommand("RID")}
		var err error
		if timeline, err = load.New(o.Requests, 0); err != nil {
			return p, err
		}
		if o.Goodput != nil {
			o.Goodput.Mark(timeline)
			sections = append(sections, Goodput(o.Goodput, src))
		}
		sections = append(sections, Requests(o, timeline, src)...)
	}
	if o.GPUs != nil {
		sections = joinOverTime(sections, GPUsOverTime(o.OverTime, timeline, o.Findings, src))
	}
	if o.Series != nil {
		sections = joinOverTime(sections, LogsOverTime(o, src))
	}
	if s := Stragglers(&o.Measured, src); len(s.Figures) > 0 {
		sections = append(sections, s)
	}
	ran := o.Heap == nil || o.GPUs != nil && len(o.GPUs.GPUs) > 0 // a memory snapshot names its rank, but not what it ran
	if o.GPUs != nil && ran {
		sections = append(sections, Ranks(&o.Measured, src)...)
	}
	if o.Profiles != nil && ran {
		replays := graphs.Read(o.Profiles)
		if s := Opportunities(o, replays, src); len(s.Figures) > 0 {
			sections = append(sections, s)
		}
		sections = append(sections, Stacks(host.Sum(o.Profiles, profilewalk.Options{From: o.Devices.From, To: o.Devices.To}, replays.Captured()), src))
	}
	sections = append(sections, Dumps(&o.Measured, src)...)
	if shorten != nil {
		shortenTables(sections, shorten)
	}
	p.Sections = append([]Section{Found(&o.Result, src, sections), inputs(o)}, sections...)
	return p, nil
}

// Found makes the section of findings, which link to the figures of other sections that show them. It also links the
// request IDs in tables to their waterfalls.
func Found(r *finders.Result, src Source, sections []Section) Section {
	l := newLinks(sections)
	for _, f := range l.tables {
		f.Body.(*Table).Links = l.requests // by request ID
	}
	return Summary(r, src, l)
}

// Title returns the title of the page for the inputs.
func Title(inputs []string) string {
	if len(inputs) == 1 {
		return "sgtrace report on " + filepath.Base(inputs[0])
	}
	return fmt.Sprintf("sgtrace report on %d inputs", len(inputs))
}

// subtitle says when the capture was made, and of what.
func subtitle(o *overview.Overview) string {
	var parts []string
	for _, f := range o.Facts() {
		if f.Name == "time" || f.Name == "servers" || f.Name == "profiles" && o.Requests == nil {
			parts = append(parts, f.Text)
		}
	}
	return strings.Join(parts, " · ")
}

// Summary makes the section of findings, with a note that lists what was checked.
func Summary(r *finders.Result, src Source, l *links) Section {
	s := Section{ID: "findings", Title: "Findings"}
	looked := r.In(finding.LookedAt)
	switch n := len(r.Findings); {
	case n == 1:
		s.Title = "1 finding"
	case n > 1:
		s.Title = fmt.Sprintf("%d findings by cost", n)
	case len(looked) > 0:
		s.Lead = "No problems found."
	default:
		s.Lead = "No findings: not enough data."
	}
	var notes []string
	if len(looked) > 0 {
		notes = append(notes, "Checked: "+strings.Join(looked, "; "))
	}
	for _, text := range append(notes, r.In(finding.TooLittle)...) {
		s.Note += text + ". "
	}
	body := &Findings{Sum: (&overview.List{Result: r, All: true}).SumText()}
	for i := range r.Findings {
		body.List = append(body.List, newFinding(i, &r.Findings[i], src, l))
	}
	if len(r.Findings) > 0 {
		s.Figures = []*Figure{{ID: "findings-list", Defined: "Summary", Command: src.Command("--summary"), Body: body}}
	}
	return s
}

// newFinding converts finding i for the page.
func newFinding(i int, f *finding.Finding, src Source, l *links) Finding {
	out := Finding{
		ID: fmt.Sprintf("finding-%d", i+1), Kind: string(f.Kind), Severity: string(f.Severity), Confidence: string(f.Confidence),
		Text: l.text(f.Text), Cost: f.Cost, CostText: f.CostText(), Without: f.WithoutText(), Links: l.ofFinding(f),
	}
	for k := range f.Evidence {
		out.Evidence = append(out.Evidence, l.ofEvidence(&f.Evidence[k]))
	}
	if len(f.Show) > 0 {
		out.Command = f.Command(slices.Concat(src.Select, src.Inputs))
	}
	return out
}

// inputs makes the section about the files that were read and how far to trust them.
func inputs(o *overview.Overview) Section {
	s := Section{ID: "inputs", Title: "What was read", Facts: o.Facts()}
	for _, d := range o.Warnings {
		s.Notes = append(s.Notes, d.Text)
	}
	return s
}

// Requests makes the sections about requests.
func Requests(o *overview.Overview, timeline *load.Timeline, src Source) []Section {
	m, set := &o.Measured, o.Requests
	list := []Section{
		Timeline(timeline, m.Changes, o.Findings, src), Latencies(set, o.Goodput, src), Tail(set, m.Tail, src),
		Waterfalls(set, m.Run(), o.Findings, m.Tail, src), Stages(set, m.RankLoads, timeline.From, timeline.To, src),
	}
	notes := document.SampleNotes(o.Diags)
	for i := range list {
		list[i].Notes = append(list[i].Notes, notes...)
	}
	return list
}

// Ranks makes the sections about the ranks that profilers recorded.
func Ranks(m *finders.Measured, src Source) []Section {
	sections := []Section{GPUs(m.GPUs, src), Kernels(m.GPUs, m.Of.Profiles, src)}
	if c := m.Collectives; c != nil && len(c.Ranks) > 0 {
		sections = append(sections, Collectives(m, src))
	}
	return sections
}

// roomNote says that a figure shows only some of its items.
func roomNote(drawn, all int, what string) string {
	return fmt.Sprintf("%d of %d %s are drawn, those that took most time; the command prints all", drawn, all, what)
}

// TableOf makes a figure of a report with its first rows; 0 means all.
func TableOf(r *table.Table, rows int, defined, command string) *Figure {
	return &Figure{ID: "table-" + r.Name(), Title: r.Title, Defined: defined, Command: command, Body: &Table{Report: r, Rows: rows}}
}

// tableFlag returns the flag that selects one of the reports of a command.
func tableFlag(r *table.Table) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Schema, "sgtrace.report."), "/")
	return "--table=" + name
}

// addTables adds the tables that have rows, each with the command that prints it.
func (s *Section) addTables(src Source, flag, defined string, tables ...*table.Table) {
	for _, t := range tables {
		if t.Len() > 0 {
			s.Figures = append(s.Figures, TableOf(t, maxRows, defined, src.Command(flag, tableFlag(t))))
		}
	}
}
