package hardware

import (
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// asBusy is the least share of its use that a GPU keeps if it has as much to do as before.
	asBusy = 0.9
	// surely is the largest probability with which a change of the clock may be chance.
	surely = 0.001
)

// A course is what a GPU did while it worked, scrape by scrape.
type course struct {
	at                 []trace.Time
	clock, util, power []float64
}

// A stretch is a part of a course, with its medians.
type stretch struct {
	from, to           int
	clock, util, power float64
}

func (c *course) part(from, to int) stretch {
	return stretch{from, to, order.Median(c.clock[from:to]), order.Median(c.util[from:to]), order.Median(c.power[from:to])}
}

// slowed reports whether a GPU was slowed down since an earlier stretch: its clock is lower though it is as busy, and it draws
// clearly less power. Load does not do that: with less to do it keeps its clock, and with more to do it draws more power, and
// its clock falls at the power limit. Both stretches must be busy, as GPUs that idle in between lower their clocks.
func (p stretch) slowed(free stretch) bool {
	return p.clock < lower*free.clock && p.power < lessPower*free.power && p.util >= asBusy*free.util && free.util >= worked
}

// falls returns the times in which a GPU was slower than at work before, by its clock, its use, and its
// power. That needs no peers, so it also finds what slows down all GPUs of a host.
func (d *Device) falls() (list []Brake) {
	every := spacing(d.clock)
	var c course
	for _, x := range d.clock {
		util, known := valueAt(d.util, x.Time, every)
		power, too := valueAt(d.power, x.Time, every)
		if known && too && util >= busy {
			c.at, c.clock, c.util, c.power = append(c.at, x.Time), append(c.clock, x.Value), append(c.util, util), append(c.power, power)
		}
	}
	changes := changepoint.Levels(c.clock, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := order.Median(c.clock[from:k]), order.Median(c.clock[k:to])
		return min(k-from, to-k) >= fewest && min(before, after) < lower*max(before, after)
	}})
	if len(changes) == 0 {
		return nil
	}
	free := c.part(0, changes[0].At)
	slow := -1 // index since when it is slowed down; -1 if it is not
	for _, x := range changes {
		p := c.part(x.At, x.To)
		if !p.slowed(free) {
			slow, free = -1, p
			continue
		}
		if slow < 0 {
			slow, list = x.At, append(list, Brake{})
		}
		p = c.part(slow, x.To)
		list[len(list)-1] = Brake{Devices: []*Device{d}, Since: c.at[p.from], Until: c.at[p.to-1], N: p.to - p.from, Clock: p.clock, Free: free.clock, Power: p.power, Drawn: free.power}
	}
	return list
}
