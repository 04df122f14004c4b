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
	waits []hostWait // in order
}

// A hostWait is a call in which a host waits for its device.
type hostWait struct{ start, end trace.Time }

// queueFull is how long a launch takes at least that waits for the device to take what was launched
// before, in ns: one takes some microseconds.
const queueFull = 1_000_000

// waitsForDevice reports whether a call waits for what the device does.
func waitsForDevice(name string, took int64) bool {
	switch {
	case strings.Contains(name, "Synchronize"):
		return true
	case strings.Contains(name, "Memcpy"): // of pageable memory, also Async
		return took >= queueFull/20
	case strings.Contains(name, "Launch"):
		return took >= queueFull
	}
	return false
}

// A launched is a kernel and when its host asked for it, on the clock of the host.
type launched struct{ start, launch trace.Time }

// A hostWalk reads launches of one stream.
type hostWalk struct {
	syms    *trace.Symbols
	classes *trace.PerName[kernelname.NameClass]
	ranks   profilewalk.PerRank[hostRank]
}

type hostRank struct {
	launches profilewalk.Launches
	kernels  []launched // of collectives
	waits    []hostWait
}

// readHosts finds out when hosts asked for collectives, and when they waited for their devices.
func (r *Chain) readHosts(set *profile.Set) {
	r.hosts = make([]host, len(r.names))
	kernels := make([][]launched, len(r.names))
	for _, stream := range set.Streams {
		w := &hostWalk{syms: set.Syms, classes: kernelname.DefaultClasses().Table(set.Syms)}
		join := profilewalk.Joiner{Call: w.addCall, Work: w.addKernel, Orphan: func(*profile.Kernel) {}}
		join.Run(stream, &profilewalk.Options{})
		for rank, h := range w.ranks.All() {
			if int(rank) >= len(r.hosts) {
				continue // children that are no rank
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
		if len(r.hosts[rank].waits) > 0 { // else nobody knows what a host waits for
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

// addKernel takes a kernel, unless its launch is not known yet.
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

// sameKernel is how far apart the starts of an arrival and of its kernel may be, in ns: clocks drift
// from the middle of a recording on.
const sameKernel = 200_000

// tellLaunches gives arrivals, in the order of their starts, the launch of the kernel that starts next
// to them.
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
