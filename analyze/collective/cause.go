package collective

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	explains    = 0.5  // of a lateness: what makes up that much of it is its cause
	worthSaying = 0.01 // of a lateness: less is not worth a word
	carried     = 0.8  // of a lateness: where the others wait less with nothing beside it, it carries over from one collective to the next
)

// A lateCause looks for what a rank does longer than the others of its peer group. What
// ranks do is counted per collective: recordings need not be equally long.
//
// All ranks leave a collective together. So a rank comes to the next one as much
// later as it computes or copies longer in between, or is longer idle: the others do not idle
// instead, but wait in the collective, which is busy. Where hosts wait in one, that is no
// idle time of this kind. If collectives run beside what ranks compute, those that follow each other find it as late
// again: then it is as much as the others wait with nothing beside it that it computes or idles longer.
type lateCause struct {
	gpus       *gpu.GPUs
	syncPoints map[int32]int // of each rank of the peer group
	rank       int32
}

// An excess is how much longer the rank was at something than the median (nearest
// rank) of the others, per collective.
type excess struct {
	ns     float64
	usual  float64 // what the others take, ns
	factor float64 // own time over usual; 0 if that is 0
}

// over compares the rank with the others, of times by rank.
func (l *lateCause) over(times map[int32]int64) excess {
	var others []float64
	for rank, n := range l.syncPoints {
		if rank != l.rank {
			others = append(others, float64(times[rank])/float64(n))
		}
	}
	own, median := float64(times[l.rank])/float64(l.syncPoints[l.rank]), distribution.LowerMedian(others)
	x := excess{ns: own - median, usual: median}
	if median > 0 {
		x.factor = own / median
	}
	return x
}

// kernelExcess is by how much kernels of one name run longer.
type kernelExcess struct {
	name string
	excess
	more        float64 // of that, what is of more launches: each takes what those of the others do
	times       float64 // as many launches as on the others; 0 if these have none
	longest     int64   // of the rank, ns
	longestElse int64   // of any other rank
}

// kernels compares what the ranks compute: all of it, and by name the largest
// difference first.
func (l *lateCause) kernels() (all excess, by []kernelExcess) {
	type named struct {
		kernelExcess
		took, launches map[int32]int64 // by rank
	}
	total := map[int32]int64{}
	list := map[trace.Sym]*named{}
	for i := range l.gpus.Kernels {
		k := &l.gpus.Kernels[i]
		if _, ok := l.syncPoints[k.RankIndex]; !ok || k.Class != kernelname.ClassCompute {
			continue
		}
		computed := k.Summary.Total - k.Waited
		total[k.RankIndex] = distribution.AddTimes(total[k.RankIndex], computed)
		of := order.Memo(list, k.Sym, func() *named { return &named{kernelExcess{name: k.Name}, map[int32]int64{}, map[int32]int64{}} })
		of.took[k.RankIndex] = distribution.AddTimes(of.took[k.RankIndex], computed)
		of.launches[k.RankIndex] += int64(k.Summary.N)
		if k.RankIndex == l.rank {
			of.longest = max(of.longest, k.Summary.Max)
		} else {
			of.longestElse = max(of.longestElse, k.Summary.Max)
		}
	}
	for _, x := range list {
		x.excess = l.over(x.took)
		if n := l.over(x.launches); n.usual > 0 {
			x.times, x.more = n.factor, n.ns*x.usual/n.usual
		}
		by = append(by, x.kernelExcess)
	}
	slices.SortFunc(by, func(a, b kernelExcess) int { return cmp.Or(cmp.Compare(b.ns, a.ns), strings.Compare(a.name, b.name)) })
	return l.over(total), by
}

// idle compares how long the devices of the ranks were idle: until something was
// launched, while the host was in a collective of hosts, and for other reasons.
func (l *lateCause) idle() (host, meets, other excess) {
	launches, meetings, rest := map[int32]int64{}, map[int32]int64{}, map[int32]int64{}
	for i := range l.gpus.GPUs {
		g := &l.gpus.GPUs[i]
		met := g.Waits.Time[gpu.Meeting]
		launches[g.RankIndex] = distribution.AddTimes(launches[g.RankIndex], g.Idle.Time[gpu.HostWait]-met-g.Waits.Time[gpu.ProfilerStart])
		meetings[g.RankIndex] = distribution.AddTimes(meetings[g.RankIndex], met)
		rest[g.RankIndex] = distribution.AddTimes(rest[g.RankIndex], g.Idle.Total()-g.Idle.Time[gpu.HostWait])
	}
	return l.over(launches), l.over(meetings), l.over(rest)
}

// alone compares how long the devices of the ranks did something of a class with nothing beside it.
func (l *lateCause) alone(class kernelname.Class) excess {
	times := map[int32]int64{}
	for i := range l.gpus.GPUs {
		g := &l.gpus.GPUs[i]
		times[g.RankIndex] = distribution.AddTimes(times[g.RankIndex], g.Exposed(class))
	}
	return l.over(times)
}

const (
	hostBound = "host-bound"
	// ComputeBound begins the cause of a rank whose kernels take longer.
	ComputeBound = "compute-bound"
)

// IsHostBound reports whether a cause says that a rank comes late because its host launches work later.
func IsHostBound(cause string) bool { return strings.HasPrefix(cause, hostBound) }

// IsComputeBound reports whether a cause says that a rank comes late because its kernels take longer.
func IsComputeBound(cause string) bool { return strings.HasPrefix(cause, ComputeBound) }

const unexplained = "neither compute nor idle time explains it"

// explain says why the rank comes late ns after the others per collective, and which
// numbers show it.
func (l *lateCause) explain(late float64) (cause, evidence string) {
	compute, kernels := l.kernels()
	host, meets, other := l.idle()
	copies := l.alone(kernelname.ClassMemory)
	meets.ns = max(0, meets.ns) // where ranks wait on their hosts, the late one does so for a shorter time
	evidence = fmt.Sprintf("per collective it arrives %s later than the median of the other ranks", words.Nearly(int64(late)))
	if l.gpus.OnlyCommunication() {
		return "what its GPU does between them was not recorded", evidence
	}
	if waits := -l.alone(kernelname.ClassCommunication).ns; waits > 0 && waits < carried*late {
		evidence += fmt.Sprintf("; these wait %s longer with nothing beside it", words.Nearly(int64(waits)))
		late = waits
	}
	for _, part := range []struct {
		format string
		ns     float64
	}{{"; it computes %s", compute.ns}, {"; it copies memory %s with nothing beside it", copies.ns}, {"; it idles %s while it waits for a launch", host.ns}, {"; it idles %s while its host is in gloo collectives", meets.ns}, {"; it idles %s for other reasons", other.ns}} {
		if math.Abs(part.ns) >= worthSaying*late {
			evidence += fmt.Sprintf(part.format, moreOrLess(part.ns))
		}
	}
	switch most := max(compute.ns, copies.ns, host.ns, meets.ns, other.ns); {
	case most < explains*late:
		cause = unexplained
	case most == compute.ns:
		cause = ComputeBound + ": " + kernelCause(compute, kernels, l.syncPoints[l.rank])
	case most == copies.ns:
		cause = "its GPU copies memory longer while no kernel runs"
	case most == host.ns:
		cause = hostBound + ": its GPU idles longer because the host launches work later"
	case most == meets.ns:
		cause = "its GPU idles longer while its host is in gloo collectives"
	default:
		cause = "its GPU idles longer, although work was launched or its launch time is unknown"
	}
	return cause, evidence
}

// AsLowClock is what is said of kernels that all run longer. Only metrics know clocks.
const AsLowClock = ", as if its GPU clock were lower"

// kernelCause says which kernels run longer per collective: one if it makes most of the difference,
// or all of them.
func kernelCause(all excess, kernels []kernelExcess, collectives int) string {
	const most, nearlyAll = 0.5, 0.8
	top := &kernels[0]
	switch {
	case float64(top.longest-top.longestElse) >= nearlyAll*all.ns*float64(collectives):
		return fmt.Sprintf("one of its `%s` kernels runs for %s", top.short(), words.Nearly(top.longest))
	case top.factor == 0 && top.ns >= most*all.ns:
		return fmt.Sprintf("it runs `%s`, which the other ranks do not", top.short())
	case moreLaunches(kernels) >= nearlyAll*all.ns && slower(all, kernels, func(k *kernelExcess) float64 { return k.times }) >= nearlyAll:
		return fmt.Sprintf("it runs nearly all of its kernels %s times as often, each for as long", words.ThreeDigits(all.factor))
	case moreLaunches(kernels) >= nearlyAll*all.ns && top.more >= most*all.ns:
		return fmt.Sprintf("it runs `%s` %s times as often, each time for as long", top.short(), words.ThreeDigits(top.times))
	case moreLaunches(kernels) >= nearlyAll*all.ns:
		return fmt.Sprintf("it runs more kernels, each for as long, `%s` most of all (%s times as often)", top.short(), words.ThreeDigits(top.times))
	case top.ns >= nearlyAll*all.ns:
		return fmt.Sprintf("its `%s` kernels run %s longer", top.short(), longer(top.excess))
	case len(kernels) > 1 && slower(all, kernels, func(k *kernelExcess) float64 { return k.factor }) >= nearlyAll:
		return fmt.Sprintf("its kernels run %s longer, nearly all of them", longer(all)) + AsLowClock
	case top.ns >= most*all.ns:
		return fmt.Sprintf("its `%s` kernels run %s longer, and so do other kernels", top.short(), longer(top.excess))
	}
	return fmt.Sprintf("its kernels run %s longer, `%s` most of all", longer(all), top.short())
}

// moreLaunches returns what of the difference is of kernels that run more often, ns.
func moreLaunches(kernels []kernelExcess) float64 {
	return order.SumRows(kernels, func(k *kernelExcess) float64 { return k.more })
}

// slower returns the part of the time of kernels, as the others take it, that is of
// kernels which take at least half as much longer, by some factor, as all do together.
func slower(all excess, kernels []kernelExcess, factor func(*kernelExcess) float64) float64 {
	sum, whole := 0.0, 0.0
	for i := range kernels {
		k := &kernels[i]
		whole += k.usual
		if factor(k)-1 >= (all.factor-1)/2 {
			sum += k.usual
		}
	}
	return distribution.Ratio(sum, whole)
}

// short is the name for a sentence: without types, and without its middle if that
// is long.
func (k *kernelExcess) short() string {
	const width = 48 // columns
	return table.CutMiddle(profile.BareName(k.name), width, table.Style{ASCII: true})
}

// longer is the excess in percent.
func longer(x excess) string { return words.InPercent(x.factor-1) + " %" }

// moreOrLess is a difference in words.
func moreOrLess(ns float64) string {
	if ns < 0 {
		return words.Nearly(int64(-ns)) + " less"
	}
	return words.Nearly(int64(ns)) + " longer"
}
