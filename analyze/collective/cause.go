package collective

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	explains    = 0.5  // part of a lateness: what makes up that much is its cause
	worthSaying = 0.01 // part of a lateness: less is not mentioned
	carried     = 0.8  // part of a lateness: if the others have less exposed waiting than that, lateness carries over from one collective to the next
)

// A lateCause looks for what a rank does for longer than the others of its peer group. Times are per collective,
// as recordings may differ in length.
//
// All ranks leave a collective together. So a rank comes to the next one later by as much as it computes, copies,
// or idles longer in between. The others don't idle instead; they wait in the collective, which counts as busy.
// Waits of hosts in collectives are no such idle time. If collectives overlap with compute, successive ones find
// the rank as late again; then the exposed waiting of the others is how much longer it computes or idles.
type lateCause struct {
	gpus       *gpu.GPUs
	syncPoints map[int32]int // by rank of the peer group
	rank       int32
}

// An excess is how much longer the rank was at something than the median (nearest rank) of the others, per collective.
type excess struct {
	ns     float64
	usual  float64 // what the others take, ns
	factor float64 // own time / usual; 0 if usual is 0
}

// over compares the rank with the others, given times by rank.
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

// kernelExcess is how much longer kernels of one name run.
type kernelExcess struct {
	name string
	excess
	more        float64             // the part due to more launches, if each takes as long as on the others
	times       float64             // launches / launches on the others; 0 if these have none
	longest     int64               // longest kernel of the rank, ns
	longestElse int64               // of any other rank
	resized     profilewalk.Resized // from the launches on the others to those of the rank
}

// kernels compares what the ranks compute: in total, and by kernel name, the largest difference first.
func (l *lateCause) kernels() (all excess, by []kernelExcess) {
	type named struct {
		kernelExcess
		took, launches map[int32]int64 // by rank
		elsewhere      []float64       // blocks of a launch on the other ranks
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
		of := order.Memo(list, k.Sym, func() *named {
			return &named{kernelExcess: kernelExcess{name: k.Name}, took: map[int32]int64{}, launches: map[int32]int64{}}
		})
		of.took[k.RankIndex] = distribution.AddTimes(of.took[k.RankIndex], computed)
		of.launches[k.RankIndex] += int64(k.Summary.N)
		if k.RankIndex == l.rank {
			of.longest, of.resized.After = max(of.longest, k.Summary.Max), k.Blocks
		} else {
			of.longestElse, of.elsewhere = max(of.longestElse, k.Summary.Max), append(of.elsewhere, k.Blocks)
		}
	}
	for _, x := range list {
		x.excess = l.over(x.took)
		if n := l.over(x.launches); n.usual > 0 {
			x.times, x.more = n.factor, n.ns*x.usual/n.usual
		}
		if x.resized.Time = x.usual; len(x.elsewhere) > 0 {
			x.resized.Before = distribution.LowerMedian(x.elsewhere)
		}
		by = append(by, x.kernelExcess)
	}
	slices.SortFunc(by, func(a, b kernelExcess) int { return cmp.Or(cmp.Compare(b.ns, a.ns), strings.Compare(a.name, b.name)) })
	return l.over(total), by
}

// idle compares how long the devices of the ranks idled: until something was launched, while
// the host was in a host collective, and for other reasons.
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

// alone compares how long the devices of the ranks did something of a class that nothing overlapped.
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
	// ComputeBound is the prefix of the cause of a rank whose kernels take longer.
	ComputeBound = "compute-bound"
)

// IsHostBound reports whether a cause is that the host of the late rank launches work later.
func IsHostBound(cause string) bool { return strings.HasPrefix(cause, hostBound) }

// IsComputeBound reports whether a cause is that the kernels of the late rank take longer.
func IsComputeBound(cause string) bool { return strings.HasPrefix(cause, ComputeBound) }

const unexplained = "neither compute nor idle time explains it"

// explain returns why the rank comes late ns after the others per collective, and the numbers that show it.
func (l *lateCause) explain(late float64) (cause, evidence string) {
	compute, kernels := l.kernels()
	host, meets, other := l.idle()
	copies := l.alone(kernelname.ClassMemory)
	meets.ns = max(0, meets.ns) // if hosts wait for each other, the late one waits less
	evidence = fmt.Sprintf("per collective it arrives %s later than the median of the other ranks", words.Nearly(int64(late)))
	if l.gpus.OnlyCommunication() {
		return "what its GPU does between them was not recorded", evidence
	}
	if waits := -l.alone(kernelname.ClassCommunication).ns; waits > 0 && waits < carried*late {
		evidence += fmt.Sprintf("; their exposed wait is %s longer", words.Nearly(int64(waits)))
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

// AsLowClock is what sentences say if all kernels run longer. Only metrics have the clock itself.
const AsLowClock = ", as if its GPU clock were lower"

// kernelCause says which kernels run longer per collective: a single one if it makes up most of the difference, or all of them.
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
		text := fmt.Sprintf("its kernels run %s longer, nearly all of them", longer(all))
		if blocks := profilewalk.More(order.EachRow(kernels, func(k *kernelExcess) profilewalk.Resized { return k.resized }), all.factor); blocks > 1 {
			return text + ", " + profilewalk.WhyAlike(blocks, all.factor, "")
		}
		return text + AsLowClock
	case top.ns >= most*all.ns:
		return fmt.Sprintf("its `%s` kernels run %s longer, and so do other kernels", top.short(), longer(top.excess))
	}
	return fmt.Sprintf("its kernels run %s longer, `%s` most of all", longer(all), top.short())
}

// moreLaunches returns the part of the difference due to kernels that run more often, in ns.
func moreLaunches(kernels []kernelExcess) float64 {
	return order.SumRows(kernels, func(k *kernelExcess) float64 { return k.more })
}

// slower returns the share of kernels, by their time on the others, that exceed it by some
// factor: those with at least half the relative excess of all kernels together.
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

// short returns the kernel name for a sentence: without types, and shortened in the middle.
func (k *kernelExcess) short() string {
	const width = 48 // columns
	return table.CutMiddle(profile.BareName(k.name), width, table.Style{ASCII: true})
}

// longer returns the excess in percent.
func longer(x excess) string { return words.InPercent(x.factor-1) + " %" }

// moreOrLess returns a difference in words.
func moreOrLess(ns float64) string {
	if ns < 0 {
		return words.Nearly(int64(-ns)) + " less"
	}
	return words.Nearly(int64(ns)) + " longer"
}
