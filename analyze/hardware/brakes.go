package hardware

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// brakes are the reasons that say by themselves that a GPU is slower than it should be: heat, and brakes of the hardware. A limit
// of power is none: under load, GPUs reach it.
const brakes = 0x8 | 0x20 | 0x40 | 0x80

// A Brake is that GPUs of a host say that heat or a brake slows them down while they work.
type Brake struct {
	Devices      []*Device
	Since, Until trace.Time // of the first and the last sample
	N            int        // samples, of all devices
	Reasons      uint64
	// Clock is the median in MHz, and Free that while nothing slowed them down; NaN is unknown.
	Clock, Free float64
}

// Brakes returns the times in which GPUs were slowed down, but for those in which they are told to be slower than their peers. GPUs
// of one host that are so at a time are one.
func Brakes(devices []*Device, told []Slow) (list []Brake) {
	for _, d := range devices {
		for _, b := range d.brakes() {
			if slices.ContainsFunc(told, func(s Slow) bool {
				return s.Device == d && s.Since <= b.Until && (s.Until == 0 || b.Since <= s.Until)
			}) {
				continue
			}
			k := slices.IndexFunc(list, func(o Brake) bool {
				return o.Devices[0].Host == d.Host && !slices.Contains(o.Devices, d) && o.Since <= b.Until && b.Since <= o.Until
			})
			if k < 0 {
				list = append(list, b)
				continue
			}
			o := &list[k]
			n := float64(len(o.Devices))
			o.Clock, o.Free = (n*o.Clock+b.Clock)/(n+1), (n*o.Free+b.Free)/(n+1)
			o.Devices, o.N, o.Reasons = append(o.Devices, d), o.N+b.N, o.Reasons|b.Reasons
			o.Since, o.Until = min(o.Since, b.Since), max(o.Until, b.Until)
		}
	}
	return list
}

// brakes returns the runs of samples in which a GPU that works names a brake.
func (d *Device) brakes() (list []Brake) {
	every := spacing(d.reasons)
	var free, slow []float64
	var run []series.Sample
	end := func() {
		if len(run) >= fewest {
			b := Brake{Devices: []*Device{d}, Since: run[0].Time, Until: run[len(run)-1].Time, N: len(run), Clock: math.NaN(), Free: math.NaN()}
			b.Reasons, _ = d.reasonsBetween(b.Since, b.Until)
			if len(slow) > 0 {
				b.Clock = order.Median(slow)
			}
			list = append(list, b)
		}
		run, slow = nil, nil
	}
	for _, x := range d.reasons {
		if !d.works(x.Time, every) || x.Value < 0 {
			continue
		}
		clock, known := valueAt(d.clock, x.Time, every)
		if uint64(x.Value)&brakes == 0 {
			if end(); known {
				free = append(free, clock)
			}
			continue
		}
		if run = append(run, x); known {
			slow = append(slow, clock)
		}
	}
	end()
	for i := range list {
		if len(free) >= fewest {
			list[i].Free = order.Median(free)
		}
	}
	return list
}

func (b *Brake) finding(devices int, from, to trace.Time) finding.Finding {
	f := finding.Finding{Subkind: ClockSubkind, Since: b.Since, Until: b.Until, At: at(b.Devices[0]), CostBasis: finding.GPUTime, Confidence: finding.Certain,
		Metric: finding.Metric{Name: "SM clock in MHz", Before: b.Free, After: b.Clock}}
	of, was, its := b.Devices[0].name(), "was", "its"
	if n := len(b.Devices); n > 1 {
		of, was, its = fmt.Sprintf("%d GPUs of %s", n, b.Devices[0].Host), "were", "their"
		f.At = place.Device(b.Devices[0].Host)
	}
	f.Text = fmt.Sprintf("%s %s slowed down from %s to %s: %s", of, was, words.At(b.Since, "15:04:05"), words.At(b.Until, "15:04:05"), why(b.Reasons&brakes))
	switch {
	case !math.IsNaN(b.Clock) && !math.IsNaN(b.Free):
		f.Text += fmt.Sprintf("; %s SM clock was %s MHz, %s at work without that", its, number(b.Clock), number(b.Free))
		if to > from && b.Clock < b.Free {
			f.Cost = (1 - b.Clock/b.Free) * float64(b.Until-b.Since) / float64(to-from) * float64(len(b.Devices)) / float64(devices)
		}
	case !math.IsNaN(b.Clock):
		f.Text += fmt.Sprintf("; %s SM clock was %s MHz", its, number(b.Clock))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("%s throttle reasons say so in %s of work", its, words.Counted(b.N, "sample")))
	return f
}
