package hardware

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// brakes are the throttle reasons that alone show that a GPU is slower than it should be: heat, and
// brakes of the hardware. A power limit is not one: under load, GPUs reach it.
const brakes = 0x8 | 0x20 | 0x40 | 0x80

// powerLimit is the reason of a GPU that is at its power limit. If it drew clearly more before, at work
// and not at its limit, the limit may have been lowered.
const (
	powerLimit = 0x4
	lessPower  = 0.9
)

// A Brake is a time in which GPUs of a host are slowed down while they work: their throttle reasons
// name heat, a brake, or a lowered power limit, or they have none, but a lower clock than before.
type Brake struct {
	Devices      []*Device
	Since, Until trace.Time // of the first and the last sample
	N            int        // samples, of all devices
	Reasons      uint64     // 0 is unknown
	// Clock is the median in MHz, and Free the median while nothing slowed them down; NaN is unknown.
	Clock, Free float64
	// Power and Drawn are the same for the power that they draw, in W.
	Power, Drawn float64
}

// slowed returns the reasons in a sample that slow a GPU down. drawn is how many W the GPU draws at work without any.
func (d *Device) slowed(x series.Sample, drawn float64, every time.Duration) uint64 {
	bits := uint64(x.Value) & brakes
	if power, ok := valueAt(d.power, x.Time, every); ok && uint64(x.Value)&powerLimit != 0 && power < lessPower*drawn {
		bits |= powerLimit
	}
	return bits
}

// drawn returns how many W a GPU draws at work while nothing slows it down; NaN is unknown.
func (d *Device) drawn(every time.Duration) float64 {
	var list []float64
	for _, x := range d.reasons {
		if power, ok := valueAt(d.power, x.Time, every); ok && x.Value >= 0 && uint64(x.Value)&(brakes|powerLimit) == 0 && d.works(x.Time, every) {
			list = append(list, power)
		}
	}
	if len(list) < fewest {
		return math.NaN()
	}
	return order.Median(list)
}

// meets reports whether two brakes share time.
func (b *Brake) meets(o *Brake) bool { return o.Since <= b.Until && b.Since <= o.Until }

// Brakes returns the times in which GPUs were slowed down, without those already reported in told,
// because the GPU was slower than its peers. Times of GPUs of one host that overlap are merged.
func Brakes(devices []*Device, told []Slow) (list []Brake) {
	for _, d := range devices {
		own := d.brakes()
		for _, b := range d.falls() {
			if !slices.ContainsFunc(own, func(o Brake) bool { return o.meets(&b) }) {
				own = append(own, b)
			}
		}
		for _, b := range own {
			if slices.ContainsFunc(told, func(s Slow) bool {
				return s.Device == d && s.Since <= b.Until && (s.Until == 0 || b.Since <= s.Until)
			}) {
				continue
			}
			k := slices.IndexFunc(list, func(o Brake) bool {
				return o.Devices[0].Host == d.Host && !slices.Contains(o.Devices, d) && o.meets(&b) && (o.Reasons == 0) == (b.Reasons == 0)
			})
			if k < 0 {
				list = append(list, b)
				continue
			}
			o := &list[k]
			n := float64(len(o.Devices))
			mean := func(a, b float64) float64 { return (n*a + b) / (n + 1) }
			o.Clock, o.Free, o.Power, o.Drawn = mean(o.Clock, b.Clock), mean(o.Free, b.Free), mean(o.Power, b.Power), mean(o.Drawn, b.Drawn)
			o.Devices, o.N, o.Reasons = append(o.Devices, d), o.N+b.N, o.Reasons|b.Reasons
			o.Since, o.Until = min(o.Since, b.Since), max(o.Until, b.Until)
		}
	}
	return list
}

// brakes returns the runs of samples in which a GPU that works reports a brake: at least fewest, or all there are.
func (d *Device) brakes() (list []Brake) {
	every := spacing(d.reasons)
	drawn, bits := d.drawn(every), uint64(0)
	var free, slow, power []float64
	var run []series.Sample
	end := func() {
		if len(run) >= min(fewest, len(d.reasons)) && len(run) > 0 {
			b := Brake{Devices: []*Device{d}, Since: run[0].Time, Until: run[len(run)-1].Time, N: len(run), Clock: math.NaN(), Free: math.NaN(), Power: math.NaN(), Drawn: drawn, Reasons: bits}
			if len(slow) > 0 {
				b.Clock = order.Median(slow)
			}
			if len(power) > 0 {
				b.Power = order.Median(power)
			}
			list = append(list, b)
		}
		run, slow, power, bits = nil, nil, nil, 0
	}
	for _, x := range d.reasons {
		if !d.works(x.Time, every) || x.Value < 0 {
			continue
		}
		clock, known := valueAt(d.clock, x.Time, every)
		why := d.slowed(x, drawn, every)
		if why == 0 {
			if end(); known {
				free = append(free, clock)
			}
			continue
		}
		bits |= why
		if run = append(run, x); known {
			slow = append(slow, clock)
		}
		if draws, ok := valueAt(d.power, x.Time, every); ok {
			power = append(power, draws)
		}
	}
	end()
	for i := range list {
		if len(free) >= fewest {
			list[i].Free = order.Median(free)
		}
	}
	return slices.DeleteFunc(list, func(b Brake) bool { return b.Reasons == powerLimit && b.Clock >= b.Free }) // it cost no clock
}

func (b *Brake) finding(devices int, from, to trace.Time) finding.Finding {
	f := finding.Finding{Subkind: ClockSubkind, Since: b.Since, Until: b.Until, At: at(b.Devices[0]), CostBasis: finding.GPUTime, Confidence: finding.Certain,
		Metric: finding.Metric{Name: "SM clock in MHz", Before: b.Free, After: b.Clock}}
	of, was, its := b.Devices[0].name(), "was", "its"
	if n := len(b.Devices); n > 1 {
		of, was, its = fmt.Sprintf("%d GPUs of %s", n, b.Devices[0].Host), "were", "their"
		f.At = place.Device(b.Devices[0].Host)
	}
	f.Text = fmt.Sprintf("%s %s slowed down %s", of, was, b.times())
	if b.Reasons != 0 {
		f.Text += ": " + why(b.Reasons)
	}
	switch {
	case !math.IsNaN(b.Clock) && !math.IsNaN(b.Free):
		f.Text += fmt.Sprintf("; %s SM clock was %s MHz, %s at work without that", its, number(b.Clock), number(b.Free))
		if to > from && b.Clock < b.Free {
			f.Cost = (1 - b.Clock/b.Free) * float64(b.Until-b.Since) / float64(to-from) * float64(len(b.Devices)) / float64(devices)
		}
	case !math.IsNaN(b.Clock):
		f.Text += fmt.Sprintf("; %s SM clock was %s MHz", its, number(b.Clock))
	}
	if b.Reasons == 0 {
		f.Confidence = finding.Likely
		f.Evidence = append(f.Evidence, finding.Sentence("at as much use as before, %s power was %s W instead of %s (%s): fewer requests leave the clock as it is, and more do not take less power", its, number(b.Power), number(b.Drawn), words.Counted(b.N, "sample")))
		if len(b.Devices[0].reasons) == 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", noReasons(its)))
		}
		return f
	}
	f.Evidence = append(f.Evidence, finding.Sentence("%s throttle reasons say so in %s of work", its, words.Counted(b.N, "sample")))
	if b.Since == b.Until {
		f.Until = 0
		f.Evidence = append(f.Evidence, finding.Sentence("one moment does not tell since when: a later one tells whether it goes on"))
	}
	if b.Reasons&powerLimit != 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s power is %s W then, and was %s W at work without that: the limit is lower than it was", its, number(b.Power), number(b.Drawn)))
	}
	return f
}

// times says when GPUs were slowed down.
func (b *Brake) times() string {
	if b.Since == b.Until {
		return "at " + words.At(b.Since, "15:04:05")
	}
	return fmt.Sprintf("from %s to %s", words.At(b.Since, "15:04:05"), words.At(b.Until, "15:04:05"))
}
