package fleet

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Fleet is what several runs say together.
type Fleet struct {
	Runs      []*Run // in the order of time
	Offenders []Offender
	Totals    []Total
	Days      []Day
	Versions  []VersionUse
}

// New puts runs together, given in the order of time.
func New(runs []*Run) *Fleet {
	f := &Fleet{Runs: runs, Offenders: offenders(runs), Totals: totals(runs), Versions: uses(runs)}
	f.Days = days(runs, f.Versions)
	return f
}

// A Total is what one kind of finding cost in all runs.
type Total struct {
	Loss
	Runs int // that have such a finding
}

// totals adds up what runs lost, the kind first that cost most GPU time, then most request time.
func totals(runs []*Run) []Total {
	var by order.Groups[finding.Kind, Total]
	for _, r := range runs {
		for _, loss := range r.Losses {
			t := by.Of(loss.Kind)
			t.Kind = loss.Kind
			t.Runs++
			t.Findings += loss.Findings
			t.GPU += loss.GPU
			t.Request += loss.Request
		}
	}
	slices.SortStableFunc(by.List, func(a, b Total) int { return cmp.Or(cmp.Compare(b.GPU, a.GPU), cmp.Compare(b.Request, a.Request)) })
	return by.List
}

// Recorded returns the time of GPUs and schedulers in all runs, and that of requests, ns.
func (f *Fleet) Recorded() (gpu, requests float64) {
	for _, r := range f.Runs {
		gpu += r.Recorded()
		requests += r.RequestTime
	}
	return gpu, requests
}

// Look asks the finders of what several runs say together.
func (f *Fleet) Look() finders.Result {
	m := finders.Measured{Of: finders.Inputs{Weeks: f}}
	return m.Look(finders.OfWeeks())
}

// Document returns the report: the list of what [Fleet.Look] found, and the tables behind it. People
// see so many rows of each table.
func (f *Fleet) Document(list *overview.List) *document.Document {
	d := &document.Document{LimitAll: true, Findings: list.Result.Findings, Again: list.Again()}
	d.AddMain(f.offenderReport())
	d.Add(f.totalReport(), f.dayReport(), f.versionReport(), f.runReport(), f.lossReport())
	printed := slices.Clone(d.Tables)
	d.Add(list.Report(), list.FinderReport())
	d.Text = func(w io.Writer, style table.Style) error {
		p := overview.NewPrinter(w, style)
		list.Print(p)
		if text := list.MutedText(); text != "" {
			p.Filled("", 0, "Muted: "+text)
		}
		return p.Out.Flush()
	}
	d.Markdown = list.Markdown
	d.Append(printed...)
	return d
}

// Daily has what was lost day by day, from the first day of a run to the last.
type Daily struct {
	Days []trace.Time // noon of each
	// GPU is the time that devices and schedulers lost to each of Fleet.Totals, ns by day; NaN on
	// a day without runs.
	GPU [][]float64
}

// daily adds up what runs lost by the day on which they began. Runs of which the time is unknown
// have no day.
func (f *Fleet) daily() Daily {
	d := Daily{GPU: make([][]float64, len(f.Totals))}
	index := map[string]int{}
	for _, r := range f.Runs {
		if r.From == 0 {
			continue
		}
		if len(d.Days) == 0 {
			d.add(noon(r.From), index)
		}
		for last := noon(r.From); d.Days[len(d.Days)-1] < last; {
			d.add(noonOf(words.Clock(d.Days[len(d.Days)-1]), 1), index)
		}
		day := index[dayOf(r.From)]
		for k := range f.Totals {
			if math.IsNaN(d.GPU[k][day]) {
				d.GPU[k][day] = 0
			}
			for i := range r.Losses {
				if r.Losses[i].Kind == f.Totals[k].Kind {
					d.GPU[k][day] += r.Losses[i].GPU
				}
			}
		}
	}
	return d
}

// add begins a day.
func (d *Daily) add(day trace.Time, index map[string]int) {
	index[dayOf(day)] = len(d.Days)
	d.Days = append(d.Days, day)
	for k := range d.GPU {
		d.GPU[k] = append(d.GPU[k], math.NaN())
	}
}

// noon returns that of the day of a time, on the clock that people read.
func noon(t trace.Time) trace.Time { return noonOf(words.Clock(t), 0) }

func noonOf(t time.Time, later int) trace.Time {
	return trace.Time(time.Date(t.Year(), t.Month(), t.Day()+later, 12, 0, 0, 0, t.Location()).UnixNano())
}
