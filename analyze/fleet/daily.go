package fleet

import (
	"math"
	"time"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Daily is what was lost day by day, from the first day of a run to the last.
type Daily struct {
	Days []trace.Time // noon of each
	// GPU is the time that devices and schedulers lost to each of Fleet.Totals, ns by day; NaN on
	// a day without runs.
	GPU [][]float64
}

// Daily adds up what runs lost by the day on which they began. Runs of which the time is unknown
// have no day.
func (f *Fleet) Daily() Daily {
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
			d.add(nextDay(d.Days[len(d.Days)-1]), index)
		}
		day := index[DayOf(r.From)]
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
	index[DayOf(day)] = len(d.Days)
	d.Days = append(d.Days, day)
	for k := range d.GPU {
		d.GPU[k] = append(d.GPU[k], math.NaN())
	}
}

// noon is that of the day of a time, on the clock that people read.
func noon(t trace.Time) trace.Time { return noonOf(words.Clock(t), 0) }

func nextDay(t trace.Time) trace.Time { return noonOf(words.Clock(t), 1) }

func noonOf(t time.Time, later int) trace.Time {
	return trace.Time(time.Date(t.Year(), t.Month(), t.Day()+later, 12, 0, 0, 0, t.Location()).UnixNano())
}
