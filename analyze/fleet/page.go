package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	defined = "Weeks" // heading in docs/METRICS.md
	maxRows = 200     // per table
)

// Page returns the page of a fleet, with what its finders found.
func (f *Fleet) Page(r *finders.Result, src page.Source, made page.Provenance) page.Page {
	b := pageBuilder{f, src, f.daily()}
	sections := []page.Section{
		{ID: "offenders", Title: "Repeat offenders", Figures: []*page.Figure{b.table(b.offenderReport())}}, b.losses(), b.steps(),
		{ID: "runs", Title: "Runs", Figures: []*page.Figure{b.table(b.runReport())}},
	}
	summary := page.Found(r, src, sections)
	for _, figure := range summary.Figures {
		figure.Defined, figure.Command = defined, src.Command(fleetFlag)
	}
	return page.Page{Title: page.Title(src.Inputs) + ": weeks", Subtitle: b.period(), Tiles: b.tiles(),
		Sections: append([]page.Section{summary}, sections...), Provenance: made}
}

// fleetFlag is the flag for the same report as text.
const fleetFlag = "--fleet"

type pageBuilder struct {
	*Fleet
	src   page.Source
	daily Daily
}

// period returns when the first run began and the last one ended, in words.
func (b *pageBuilder) period() string {
	from, to := trace.Time(0), trace.Time(0)
	for _, r := range b.Runs {
		if r.From != 0 && (from == 0 || r.From < from) {
			from = r.From
		}
		to = max(to, r.To)
	}
	if from == 0 {
		return ""
	}
	return words.Between(from, to)
}

// tiles returns the tiles: number of runs, recorded time, lost time, and repeat offenders.
func (b *pageBuilder) tiles() []page.Tile {
	gpu, _ := b.recorded()
	value, unit := split(gpuHours(gpu))
	list := []page.Tile{
		{Name: "Runs", Value: words.Thousands(int64(len(b.Runs))), Detail: "on " + words.Counted(len(b.daily.Days), "day"), State: page.Neutral, Href: "#runs"},
		{Name: "Recorded", Value: value, Unit: unit, Detail: "of devices and schedulers", State: page.Neutral, Href: "#runs"},
	}
	if len(b.Totals) > 0 && b.Totals[0].GPU > 0 {
		t := &b.Totals[0]
		value, unit := split(gpuHours(t.GPU))
		list = append(list, page.Tile{Name: "Lost to " + string(t.Kind), Value: value, Unit: unit,
			Detail: words.InPercent(t.GPU/gpu) + " % of what was recorded", State: page.Bad, Href: "#losses"})
	}
	repeats := page.Tile{Name: "Repeat offenders", State: page.Good, Href: "#offenders"}
	n := 0
	for i := range b.Offenders {
		if o := &b.Offenders[i]; o.repeats() && o.Because == nil {
			if n == 0 {
				repeats.Detail = fmt.Sprintf("%s: %d of %d runs", o.String(), o.Found, o.Could)
			}
			n++
		}
	}
	if repeats.Value = strconv.Itoa(n); n > 0 {
		repeats.State = page.Bad
	}
	return append(list, repeats)
}

// split splits "3.20 GPU-hours" into the number and the unit.
func split(text string) (value, unit string) {
	_, _ = fmt.Sscanf(text, "%s %s", &value, &unit) // the text always has a space
	return value, unit
}

// table returns a figure with one of the tables of the report.
func (b *pageBuilder) table(t *table.Table) *page.Figure {
	return page.TableOf(t, maxRows, defined, b.src.Command(fleetFlag, "--table="+t.Name()))
}

// losses shows what each kind of finding cost, by day and in total.
func (b *pageBuilder) losses() page.Section {
	totals := b.totalReport()
	s := page.Section{ID: "losses", Title: "GPU-hours lost", Lead: totals.Title + "."}
	if f := b.lossChart(); f != nil {
		s.Figures = append(s.Figures, f)
	}
	all := b.table(totals)
	all.Title = "Lost by kind"
	s.Figures = append(s.Figures, all, b.table(b.lossReport()))
	return s
}

// lossChart draws the GPU time lost to each kind by day; nil if none was lost.
func (b *pageBuilder) lossChart() *page.Figure {
	unit, size := "GPU-hours", 3600*1e9
	if len(b.Totals) > 0 && b.Totals[0].GPU < size {
		unit, size = "GPU-seconds", 1e9
	}
	panel := chart.Panel{Title: unit + " lost", Unit: table.Number}
	for k := range b.Totals {
		if b.Totals[k].GPU <= 0 || len(panel.Curves) == chart.Hues {
			continue
		}
		c := chart.Curve{Name: string(b.Totals[k].Kind), Color: len(panel.Curves)}
		for _, ns := range b.daily.GPU[k] {
			c.Values = append(c.Values, ns/size)
		}
		panel.Curves = append(panel.Curves, c)
	}
	if len(panel.Curves) == 0 || len(b.daily.Days) < 2 {
		return nil
	}
	body := b.panels()
	body.Panels = []chart.Panel{panel}
	return &page.Figure{ID: "losses-by-day", Title: "Lost by day", Defined: defined, Command: b.src.Command(fleetFlag, "--table=fleet.costs"), Shows: []finding.Kind{finding.Repeat},
		Caption: "Each point is a day with runs. Kinds don't add up: one second may be lost to several of them.", Body: body}
}

// panels returns an empty chart by day, with a mark where each new version appears.
func (b *pageBuilder) panels() *chart.Panels {
	const half = trace.Time(12 * 3600 * 1e9)
	days := b.daily.Days
	p := &chart.Panels{From: days[0] - half, To: days[len(days)-1] + half, Times: days}
	for i := range b.Versions {
		u := &b.Versions[i]
		if u.Before == "" || u.First == 0 {
			continue
		}
		k := slices.IndexFunc(p.Marks, func(m chart.Mark) bool { return m.Time == u.First })
		if k < 0 {
			p.Marks = append(p.Marks, chart.Mark{First: u.First, Time: u.First, Last: u.First, Text: u.String()})
		} else {
			p.Marks[k].Text += ", " + u.String()
		}
	}
	slices.SortFunc(p.Marks, func(x, y chart.Mark) int { return cmp.Compare(x.Time, y.Time) })
	for i := range p.Marks {
		p.Marks[i].Label = strconv.Itoa(i + 1)
	}
	return p
}

// steps shows the step times of each series by day, and when new versions appeared.
func (b *pageBuilder) steps() page.Section {
	s := page.Section{ID: "steps", Title: "Step times"}
	for i := range b.Days {
		if d := b.Days[i].Drift; d != nil {
			s.Points = append(s.Points, d.String())
		}
	}
	if len(b.Days) > 0 && len(b.daily.Days) > 1 {
		body := b.panels()
		body.Panels = b.stepPanels()
		f := &page.Figure{ID: "steps-by-day", Title: "Median step by day", Defined: defined, Command: b.src.Command(fleetFlag, "--table=fleet.steps"),
			Caption: "Each point is the median over hosts on a day.", Shows: []finding.Kind{finding.Change}, Body: body}
		if len(body.Marks) > 0 {
			f.Caption += " Lines are versions that came, by number."
			for i := range body.Marks {
				f.Notes = append(f.Notes, body.Marks[i].Label+": "+body.Marks[i].Text)
			}
		}
		s.Figures = append(s.Figures, f)
	}
	s.Figures = append(s.Figures, b.table(b.dayReport()), b.table(b.versionReport()))
	return s
}

// stepPanels returns a panel for each series of step times.
func (b *pageBuilder) stepPanels() (panels []chart.Panel) {
	at := map[string]int{}
	for i, t := range b.daily.Days {
		at[dayOf(t)] = i
	}
	index := map[Series]int{}
	for i := range b.Days {
		d := &b.Days[i]
		k, ok := index[d.Series]
		if !ok {
			k = len(panels)
			index[d.Series] = k
			values := make([]float64, len(b.daily.Days))
			for i := range values {
				values[i] = math.NaN()
			}
			panels = append(panels, chart.Panel{Title: d.Kind + " steps, by " + d.Of, Unit: table.Duration,
				Curves: []chart.Curve{{Name: d.Kind + ", " + d.Of, Color: k % chart.Hues, Values: values}}})
		}
		if day, ok := at[d.Day]; ok {
			panels[k].Curves[0].Values[day] = float64(d.Median)
		}
	}
	return panels
}
