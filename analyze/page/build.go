package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/stacks"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/request"
)

// Overview makes the page of an overview: what it says, and a section for everything
// that it looked at.
func Overview(o *overview.Overview) (Page, error) {
	src := Source{o.Select, o.Inputs}
	p := Page{Title: title(o.Inputs), Facts: o.Facts(), Sections: []Section{Summary(&o.Result, src)}}
	for _, d := range o.Warnings {
		p.Notes = append(p.Notes, d.Text)
	}
	var timeline *load.Timeline
	if o.Requests != nil {
		var err error
		if timeline, err = load.New(o.Requests, 0); err != nil {
			return p, err
		}
		if o.Goodput != nil {
			p.Sections = append(p.Sections, Goodput(o.Goodput, src))
		}
		p.Sections = append(p.Sections, Requests(o.Requests, timeline, o.Changes, o.Tail, o.RankLoads, src)...)
	}
	if o.GPUs != nil {
		p.Sections = joinOverTime(p.Sections, GPUsOverTime(o.OverTime, timeline, src))
		p.Sections = append(p.Sections, Ranks(o.GPUs, o.Collectives, src)...)
	}
	if o.Profiles != nil {
		p.Sections = append(p.Sections, Stacks(stacks.Sum(o.Profiles, walk.Options{From: o.Devices.From, To: o.Devices.To}), src))
	}
	return p, nil
}

func title(inputs []string) string {
	if len(inputs) == 1 {
		return "sgtrace report on " + filepath.Base(inputs[0])
	}
	return fmt.Sprintf("sgtrace report on %d inputs", len(inputs))
}

// Summary makes the section about what stands out, and what was looked at for it.
func Summary(r *finders.Result, src Source) Section {
	s := Section{Title: "Summary"}
	looked := r.In(finding.LookedAt)
	switch {
	case len(r.Findings) > 0:
	case len(looked) > 0:
		s.Lead = "Nothing stands out."
	default:
		s.Lead = "No findings: not enough data."
	}
	var notes []string
	if len(looked) > 0 {
		notes = append(notes, "Looked at: "+strings.Join(looked, "; "))
	}
	for _, text := range append(notes, r.In(finding.TooLittle)...) {
		s.Note += text + ". "
	}
	body := new(Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		one := Finding{Kind: string(f.Kind), Text: f.Text, Remark: f.Remark(), Evidence: finding.Sentences(f.Evidence)}
		if len(f.Show) > 0 {
			one.Command = f.Command(slices.Concat(src.Select, src.Inputs))
		}
		body.List = append(body.List, one)
	}
	if len(r.Findings) > 0 {
		s.Figures = []*Figure{{Title: "What stands out", Defined: "Summary", Command: src.Command("--summary"), Body: body}}
	}
	return s
}

// Requests makes the sections about requests. changes, tail and ranks may be nil.
func Requests(set *request.Set, timeline *load.Timeline, changes *change.Changes, tail *tail.Tail, ranks *rank.Ranks, src Source) []Section {
	sections := []Section{Latencies(set, src), Timeline(timeline, changes, src)}
	if tail != nil {
		sections = append(sections, Tail(set, tail, src))
	}
	return append(sections, Stages(set, ranks, src))
}

// Ranks makes the sections about what profilers recorded of ranks. c may be nil.
func Ranks(g *gpu.GPUs, c *collective.Collectives, src Source) []Section {
	sections := []Section{GPUs(g, src), Kernels(g, src)}
	if c != nil && len(c.Ranks) > 0 {
		sections = append(sections, Collectives(c, g, src))
	}
	return sections
}

// roomNote says that a figure has no room for all of something.
func roomNote(drawn, all int, what string) string {
	return fmt.Sprintf("%d of %d %s are drawn, those that took most time; the command prints all", drawn, all, what)
}

// TableOf makes a figure of a report, with its first rows; 0 is all.
func TableOf(r *table.Table, rows int, defined, command string) *Figure {
	return &Figure{Title: r.Title, Defined: defined, Command: command, Body: &Table{Report: r, Rows: rows}}
}

// tableFlag chooses a report among those that one command prints.
func tableFlag(r *table.Table) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Schema, "sgtrace.report."), "/")
	return "--table=" + name
}
