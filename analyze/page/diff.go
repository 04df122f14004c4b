package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// maxChanged limits the kernels in the figure of changed kernels.
const maxChanged = 20

// Colors of the two sides of a comparison.
const (
	beforeColor = 0
	afterColor  = 1
)

// Diff makes the page of a comparison of two captures. command prints its tables.
func Diff(d *diff.Diff, before, after *diff.Collected, command string, made Provenance) Page {
	p := Page{Title: fmt.Sprintf("sgtrace diff of %s and %s", d.Before.Label, d.After.Label), Tiles: diffTiles(d), Provenance: made}
	sides := d.SideReport()
	b := diffBuilder{d, [2]*diff.Collected{before, after}, command}
	changes := []Section{{ID: "requests", Title: "Requests", Figures: slices.Concat(b.curves(), b.cascade())}, {ID: "kernels", Title: "Kernels", Figures: b.kernels()}}
	changes = slices.DeleteFunc(changes, func(s Section) bool { return len(s.Figures) == 0 })
	numbers := Section{ID: "numbers", Title: "All numbers", Figures: []*Figure{TableOf(d.Report(), maxRows, "Two captures", command)}}
	captures := Section{ID: "captures", Title: "Captures"}
	for _, t := range []*table.Table{sides, d.SetupReport(), d.LoadReport(), d.Percentiles()} {
		if t.Len() > 0 {
			f := TableOf(t, 0, "Two captures", command)
			if t == sides {
				f.Title = "What was compared"
			}
			captures.Figures = append(captures.Figures, f)
		}
	}
	l := newLinks([]Section{numbers})
	p.Sections = slices.Concat([]Section{b.findings(l, sides.Title)}, changes, []Section{numbers, captures})
	return p
}

// diffTiles returns the headline metrics before and after.
func diffTiles(d *diff.Diff) []Tile {
	var list []Tile
	for _, m := range metric.At(metric.Headline) {
		r := d.Row(diff.Request, m.Name)
		if r == nil {
			continue
		}
		t := Tile{Name: m.Title, Value: words.Nearly(r.After.P50), Unit: "p50", State: Neutral, Href: "#numbers",
			Detail: fmt.Sprintf("was %s; p99 %s → %s", words.Nearly(r.Before.P50), words.Nearly(r.Before.P99), words.Nearly(r.After.P99))}
		switch {
		case r.Changed() && r.Effect() > 0:
			t.State = Bad
		case r.Changed() && r.Effect() < 0:
			t.State = Good
		}
		list = append(list, t)
	}
	return list
}

type diffBuilder struct {
	*diff.Diff
	sides   [2]*diff.Collected
	command string
}

// findings makes the section of what changed.
func (b *diffBuilder) findings(l *links, verdict string) Section {
	found := b.Findings()
	s := Section{ID: "findings", Title: "What changed", Lead: verdict}
	body := new(Findings)
	for i := range found {
		body.List = append(body.List, newFinding(i, &found[i], Source{}, l))
	}
	if len(found) > 0 {
		s.Figures = []*Figure{{ID: "findings-list", Command: b.command, Body: body}}
	}
	return s
}

// curves returns the distributions of the headline metrics, side by side.
func (b *diffBuilder) curves() []*Figure {
	var list []*Figure
	for _, m := range metric.At(metric.Headline) {
		lines := []chart.Distribution{
			{Name: b.Before.Label, Values: b.sides[0].Values(diff.Request, m.Name), Color: beforeColor},
			{Name: b.After.Label, Values: b.sides[1].Values(diff.Request, m.Name), Color: afterColor},
		}
		if len(lines[0].Values) == 0 || len(lines[1].Values) == 0 {
			continue
		}
		if lines[0].Name == lines[1].Name {
			lines[0].Name, lines[1].Name = "before: "+lines[0].Name, "after: "+lines[1].Name
		}
		list = append(list, &Figure{ID: "curves-" + m.Name, Title: m.Title, Caption: howToReadPercentiles, Defined: "Metrics of a request",
			Command: b.command, Body: &chart.Percentiles{Lines: lines}})
	}
	return list
}

// cascade explains the change of the mean E2E, part by part.
func (b *diffBuilder) cascade() []*Figure {
	mean := func(m *metric.Metric) (before, after float64, ok bool) {
		r := b.Row(diff.Request, m.Name)
		if r == nil {
			return 0, 0, false
		}
		return float64(r.Before.PerUnit) / 10, float64(r.After.PerUnit) / 10, min(r.Before.PerUnit, r.After.PerUnit) >= 0
	}
	before, after, ok := mean(metric.E2E)
	if !ok {
		return nil
	}
	c := &chart.Cascade{Unit: table.Duration, From: chart.CascadeRow{Name: "E2E before", Value: before}, To: chart.CascadeRow{Name: "E2E after", Value: after}}
	rest := after - before
	for _, m := range metric.Requests {
		if x, y, ok := mean(m); ok && m.Weight == metric.Part {
			c.Rows = append(c.Rows, chart.CascadeRow{Name: m.Title, Value: y - x})
			rest -= y - x
		}
	}
	c.Rows = append(c.Rows, chart.CascadeRow{Name: "all else", Value: rest})
	return []*Figure{{ID: "cascade", Title: "Where the difference of E2E comes from", Defined: "Metrics of a request", Command: b.command, Body: c,
		Caption: "Means per finished request, from before to after. A metric that some requests lack counts as 0 for them."}}
}

// kernels returns the figure of the kernels whose time per step changed, largest changes first.
func (b *diffBuilder) kernels() []*Figure {
	var changed []*diff.Row
	for i := range b.Rows {
		if r := &b.Rows[i]; r.Kind == diff.Kernel && r.Rank == "" && r.Changed() && r.Moved() != 0 {
			changed = append(changed, r)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.SortStableFunc(changed, func(x, y *diff.Row) int {
		return cmp.Compare(distribution.Abs(y.Moved()), distribution.Abs(x.Moved()))
	})
	f := &Figure{ID: "changed-kernels", Title: "Kernels that changed", Defined: "Two captures", Command: b.command,
		Caption: "Time per step after, minus that before. Right of zero is slower."}
	if len(changed) > maxChanged {
		f.Notes = []string{fmt.Sprintf("%d of %d kernels that changed are drawn, those that moved most", maxChanged, len(changed))}
		changed = changed[:maxChanged]
	}
	bars := &chart.Bars{Unit: table.Duration, Parts: []chart.Part{{Name: "slower", Color: afterColor}, {Name: "faster", Color: beforeColor}}}
	for _, r := range changed {
		moved := float64(r.Moved()) / 10
		bars.Rows = append(bars.Rows, chart.Bar{Name: r.Name, Values: []float64{max(0, moved), min(0, moved)},
			Total: fmt.Sprintf("%s → %s", durationText(r.Before.PerUnit/10), durationText(r.After.PerUnit/10))})
	}
	f.Body = bars
	return []*Figure{f}
}
