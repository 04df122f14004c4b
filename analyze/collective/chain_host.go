package collective

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A host is what the host of a rank did that depends on its device.
type host struct {
	waits []hostWait // ordered by end
}

// A hostWait is a call in which a host waits for its device.
type hostWait struct{ start, end trace.Time }

// queueFull is the least duration of a launch, in ns, that shows that it waits for the device
// to take earlier launches. Otherwise a launch takes a few microseconds.
const queueFull = 1_000_000

// waitsForDevice reports whether a call waits for work of the device.
func waitsForDevice(name string, took int64) bool {
	switch {
	case strings.Contains(name, "Synchronize"):
		return true
	case strings.Contains(name, "Memcpy"): // of pageable memory; Async ones, too
		return took >= queueFull/20
	case strings.Contains(name, "Launch"):
		return took >= queueFull
	}
	return false
}

// A launched is a kernel with the time of its launch, on the host's clock.
type launched struct{ start, launch trace.Time }

// A hostWalk reads launches of one stream.
type hostWalk struct {
	syms    *trace.Symbols
	classes *trace.PerName[kernelname.NameClass]
	ranks   profilewalk.PerRank[hostRank]
}

type hostRank struct {
	launches profilewalk.Launches
	kernels  []launched // collective kernels
	waits    []hostWait
}

// readHosts finds when hosts launched collectives, and when they waited for their devices.
func (r *Chain) readHosts(set *profile.Set) {
	r.hosts = make([]host, len(r.names))
	kernels := make([][]launched, len(r.names))
	for _, stream := range set.Streams {
		w := &hostWalk{syms: set.Syms, classes: kernelname.DefaultClasses().Table(set.Syms)}
		join := profilewalk.Joiner{Call: w.addCall, Work: w.addKernel, Orphan: func(*profile.Kernel) {}}
		join.Run(stream, &profilewalk.Options{})
		for rank, h := range w.ranks.All() {
			if int(rank) >= len(r.hosts) {
				continue // child processes that are not ranks
			}
			offset := trace.Time(set.ClockOffsetOf(rank))
			for _, x := range h.waits {
				r.hosts[rank].waits = append(r.hosts[rank].waits, hostWait{x.start - offset, x.end - offset})
			}
			for _, k := range h.kernels {
				kernels[rank] = append(kernels[rank], launched{k.start - offset, k.launch - offset})
			}
		}
	}
	for rank, list := range r.byRank() {
		slices.SortFunc(r.hosts[rank].waits, func(x, y hostWait) int { return cmp.Compare(x.end, y.end) })
		if len(r.hosts[rank].waits) > 0 { // otherwise it is unknown what a host waits for
			tellLaunches(list, kernels[rank])
		}
	}
}

func (w *hostWalk) addCall(c *profile.Call) {
	rank := w.ranks.At(c.Rank)
	if name := w.syms.Name(c.Name); waitsForDevice(name, c.Dur()) {
		rank.waits = append(rank.waits, hostWait{c.Start, c.Start + trace.Time(c.Dur())})
	}
	rank.launches.Add(c)
}

// addKernel adds a kernel of a collective. It returns false if the launch is not known yet.
func (w *hostWalk) addKernel(k *profile.Kernel) bool {
	if w.classes.Of(k.Name).Class != kernelname.ClassCommunication || k.Correlation == 0 {
		return true
	}
	rank := w.ranks.At(k.Rank)
	l := rank.launches.Find(k.Correlation)
	if l == nil {
		return false
	}
	rank.kernels = append(rank.kernels, launched{k.Start, l.Start})
	return true
}

// sameKernel is how far apart, in ns, the starts of an arrival and of its kernel may be:
// clocks drift away from the middle of a recording.
const sameKernel = 200_000

// tellLaunches sets the launches of arrivals, which are ordered by start, to those of the kernels that start closest.
func tellLaunches(list []*arrival, kernels []launched) {
	slices.SortFunc(kernels, func(x, y launched) int { return cmp.Compare(x.start, y.start) })
	k := 0
	for _, a := range list {
		for k+1 < len(kernels) && distance(kernels[k+1].start, a.start) <= distance(kernels[k].start, a.start) {
			k++
		}
		if k < len(kernels) && distance(kernels[k].start, a.start) <= sameKernel {
			a.launch = min(kernels[k].launch+a.start-kernels[k].start, a.start)
		}
	}
}

func distance(x, y trace.Time) trace.Time { return max(x-y, y-x) }
