package hardware

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Device is what metrics show of a GPU.
type Device struct {
	Host, UUID string
	User       string // the pod that it is assigned to; "" is unknown
	GPU        int32
	clock      []series.Sample // by time
	util       []series.Sample
	reasons    []series.Sample
	heat       []series.Sample
	power      []series.Sample
	use        *Use   // of the rank that it works for; nil is unknown
	by         string // how that is known
	shared     bool   // several ranks claim it
}

// A Slow is a GPU whose clock is lower than that of its peers for some time.
type Slow struct {
	Device *Device
	Since  trace.Time // the first scrape with a lower clock
	Until  trace.Time // the last such scrape; 0 if it was so until the end
	Every  time.Duration
	// Clock and Peers are medians in MHz; Others is how many peers there are.
	Clock, Peers float64
	Others, N    int // N is the number of scrapes
	// Reasons are the bits that are set in at least half of the scrapes, if Known.
	Reasons uint64
	Known   bool
	Work    bool // metrics show that it worked
	// Heat and PeersHeat are medians of temperatures in °C meanwhile; NaN is unknown.
	Heat, PeersHeat float64
}

const (
	// lower is the share of its peers' clock below which a GPU is slower. Clocks have steps of 15 MHz,
	// out of about 2,000, and those of equal GPUs differ by a few steps under load.
	lower = 0.95
	// fewest is the least number of scrapes in a row for a finding.
	fewest = 4
	// fewPeers is the least number of peers that show what is usual.
	fewPeers = 2
	// busy is the use, in %, from which on a GPU works.
	busy = 10
)

// devices returns the GPUs that metrics are about, by host and number.
func devices(set *series.Set) []*Device {
	byPlace := map[int32]*Device{}
	var list []*Device
	for i, x := range set.List {
		var to func(*Device) *[]series.Sample
		switch x.Metric {
		case series.SMClock:
			to = func(d *Device) *[]series.Sample { return &d.clock }
		case series.GPUUtil:
			to = func(d *Device) *[]series.Sample { return &d.util }
		case series.Throttling:
			to = func(d *Device) *[]series.Sample { return &d.reasons }
		case series.GPUTemperature:
			to = func(d *Device) *[]series.Sample { return &d.heat }
		case series.Power:
			to = func(d *Device) *[]series.Sample { return &d.power }
		default:
			continue
		}
		p := set.Places[x.Place]
		d := byPlace[x.Place]
		if d == nil {
			d = &Device{Host: set.Servers[p.Server].Host, UUID: p.UUID, User: p.User, GPU: p.GPU}
			byPlace[x.Place], list = d, append(list, d)
		}
		for s := range set.Each(i) {
			*to(d) = append(*to(d), s)
		}
	}
	slices.SortFunc(list, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.UUID, b.UUID))
	})
	return list
}

// Slower finds the GPUs whose clocks are lower than those of their peers.
func Slower(devices []*Device) (list []Slow) {
	for _, d := range devices {
		list = append(list, slower(d, d.peers(devices))...)
	}
	return list
}

// alike groups GPUs of a host that are slower at the same time for the same reason, unless it is known whose they are.
func alike(slow []Slow) (by [][]*Slow) {
	near := func(a, b, every trace.Time) bool { return max(a-b, b-a) <= every }
	for i := range slow {
		s := &slow[i]
		k := slices.IndexFunc(by, func(same []*Slow) bool {
			o, every := same[0], trace.Time(s.Every)
			return s.Device.use == nil && o.Device.use == nil && s.Device.Host == o.Device.Host && s.Known == o.Known && s.Reasons == o.Reasons && near(s.Since, o.Since, every) && near(s.Until, o.Until, every)
		})
		if k < 0 {
			k, by = len(by), append(by, nil)
		}
		by[k] = append(by[k], s)
	}
	return by
}

// peers returns the GPUs that a GPU is compared with: the others of its host and, if these are few,
// those of recorded ranks on other hosts.
func (d *Device) peers(devices []*Device) (list []*Device) {
	for _, o := range devices {
		if o != d && o.Host == d.Host {
			list = append(list, o)
		}
	}
	if len(list) >= fewPeers || d.use == nil {
		return list
	}
	for _, o := range devices {
		if o.use != nil && o.Host != d.Host {
			list = append(list, o)
		}
	}
	return list
}

// braked reports whether metrics themselves show that heat or a brake slows a GPU down. Then one peer
// is enough.
func (d *Device) braked(t trace.Time, every time.Duration) bool {
	v, ok := valueAt(d.reasons, t, every)
	return ok && v >= 0 && uint64(v)&brakes != 0
}

// slower finds the times at which a GPU is slower than its peers.
func slower(d *Device, all []*Device) (list []Slow) {
	type at struct {
		sample series.Sample
		peers  float64
		others int
	}
	every := spacing(d.clock)
	var run []at
	last := trace.Time(0)
	end := func(over bool) {
		if len(run) >= fewest || len(run) == 1 && len(d.clock) == 1 && len(d.util) > 0 { // metrics of a single moment have no more
			var own, peers []float64
			for _, x := range run {
				own, peers = append(own, x.sample.Value), append(peers, x.peers)
			}
			s := Slow{Device: d, Since: run[0].sample.Time, Every: every, Clock: order.Median(own), Peers: order.Median(peers), Others: run[len(run)-1].others, N: len(run)}
			if over {
				s.Until = run[len(run)-1].sample.Time
			}
			s.Reasons, s.Known = d.reasonsBetween(s.Since, run[len(run)-1].sample.Time)
			s.Work = len(d.util) > 0
			s.Heat, s.PeersHeat = heatBetween(s.Since, run[len(run)-1].sample.Time, d), heatBetween(s.Since, run[len(run)-1].sample.Time, all...)
			list = append(list, s)
		}
		run = run[:0]
	}
	for _, x := range d.clock {
		if last != 0 && time.Duration(x.Time-last) > 4*every {
			end(true) // what happened in between is unknown
		}
		last = x.Time
		if !d.works(x.Time, every) {
			continue // an idle GPU lowers its clock
		}
		var others []float64
		for _, o := range all {
			if v, ok := valueAt(o.clock, x.Time, every); ok && o.works(x.Time, every) {
				others = append(others, v)
			}
		}
		if n := len(others); n == 0 || n < fewPeers && !d.braked(x.Time, every) {
			continue
		}
		if peers := order.Median(others); x.Value < lower*peers {
			run = append(run, at{x, peers, len(others)})
			continue
		}
		end(true)
	}
	end(false)
	return list
}

// heatBetween returns the median of the temperatures of GPUs between two times; NaN if there are none.
func heatBetween(from, to trace.Time, devices ...*Device) float64 {
	list := between(from, to, devices, func(d *Device) []series.Sample { return d.heat })
	if len(list) == 0 {
		return math.NaN()
	}
	return order.Median(list)
}

// works reports whether a GPU works at a time; it does if that is unknown.
func (d *Device) works(t trace.Time, every time.Duration) bool {
	const idle = 1 // bit of the reasons
	if v, ok := valueAt(d.util, t, every); ok {
		return v >= busy
	}
	v, ok := valueAt(d.reasons, t, every)
	return !ok || uint64(v)&idle == 0
}

// reasonsBetween returns the bits that at least half of the scrapes between two times have.
func (d *Device) reasonsBetween(from, to trace.Time) (bits uint64, known bool) {
	n, counts := 0, [64]int{}
	for _, s := range d.reasons {
		if s.Time < from || s.Time > to || s.Value < 0 {
			continue
		}
		n++
		for b := range counts {
			if uint64(s.Value)>>b&1 == 1 {
				counts[b]++
			}
		}
	}
	for b, c := range counts {
		if n > 0 && 2*c >= n {
			bits |= 1 << b
		}
	}
	return bits, n > 0
}

// valueAt returns the value at a time: that of the last sample until then, if it is not too old, or
// else of one soon after.
func valueAt(list []series.Sample, t trace.Time, every time.Duration) (float64, bool) {
	i, _ := slices.BinarySearchFunc(list, t+1, func(s series.Sample, t trace.Time) int { return cmp.Compare(s.Time, t) })
	if i > 0 && time.Duration(t-list[i-1].Time) <= 2*every {
		return list[i-1].Value, true
	}
	if i < len(list) && time.Duration(list[i].Time-t) <= every {
		return list[i].Value, true
	}
	return 0, false
}

// spacing returns the median time between samples.
func spacing(list []series.Sample) time.Duration {
	var gaps []float64
	for i := 1; i < len(list); i++ {
		gaps = append(gaps, float64(list[i].Time-list[i-1].Time))
	}
	if len(gaps) == 0 {
		return 0
	}
	return time.Duration(order.Median(gaps))
}

// IdleSubkind is the subkind of findings about GPUs that do nothing while their peers are busy.
const IdleSubkind = "idle"

const (
	// spinning is the use, in %, from which on a GPU has a kernel at nearly all times, such as one that waits in a collective.
	spinning = 95
	// doesNothing is the use, in %, up to which a GPU does next to nothing.
	doesNothing = 5
	// worked is the use, in %, from which on a GPU took part before.
	worked = 50
)

// idlers finds GPUs that worked, and now do nothing while all others of their host have a kernel at all
// times, as they do when they wait in a collective for the rank of that GPU.
func idlers(devices []*Device, from, to trace.Time) (list []finding.Finding) {
	for _, d := range devices {
		peers := d.peers(devices)
		if len(peers) < fewPeers {
			continue
		}
		every, n := spacing(d.util), 0
		var before []float64
		var since trace.Time
		for _, x := range d.util {
			all := true
			for _, o := range peers {
				v, ok := valueAt(o.util, x.Time, every)
				all = all && ok && v >= spinning
			}
			if all && x.Value <= doesNothing {
				if n++; n == 1 {
					since = x.Time
				}
				continue
			}
			n = 0
			before = append(before, x.Value)
		}
		if n < fewest || len(before) < fewest || order.Median(before) < worked {
			continue
		}
		f := finding.Finding{Subkind: IdleSubkind, Since: since, At: at(d), CostBasis: finding.GPUTime, Confidence: finding.Likely, Metric: finding.Metric{Name: "GPU busy in %", Before: order.Median(before), After: 0}}
		f.Text = fmt.Sprintf("%s has done nothing since %s, while its %d peers are busy all the time; before, it was at %s %%", d.name(), words.At(since, "15:04:05"), len(peers), words.InPercent(order.Median(before)/100))
		f.Cost = float64(to-since) / float64(max(1, to-from)) / float64(len(devices))
		f.Evidence = append(f.Evidence, finding.Sentence("%s in a row, until the end", words.Counted(n, "scrape")))
		if then, now := medianOf(peers, from, since-1), medianOf(peers, since, to); then > now/lower {
			f.Evidence = append(f.Evidence, finding.Sentence("its peers draw %s W since then, %s before: they wait, and compute less", number(now), number(then)))
		}
		f.Evidence = append(f.Evidence, finding.Sentence("a rank that waits in a collective keeps its GPU busy: if all are of one job, they wait for the one on this GPU, and its log and stacks tell where it stands"))
		list = append(list, f)
	}
	return list
}

// medianOf returns the median of the power that GPUs draw between two times, in W; 0 if there are no samples.
func medianOf(devices []*Device, from, to trace.Time) float64 {
	list := between(from, to, devices, func(d *Device) []series.Sample { return d.power })
	if len(list) == 0 {
		return 0
	}
	return order.Median(list)
}

// between returns the values of samples of GPUs between two times.
func between(from, to trace.Time, devices []*Device, of func(*Device) []series.Sample) (list []float64) {
	for _, d := range devices {
		for _, s := range of(d) {
			if s.Time >= from && s.Time <= to {
				list = append(list, s.Value)
			}
		}
	}
	return list
}
