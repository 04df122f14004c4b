package profile

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A HostWait is a time in which a rank was in a collective in which hosts wait for each other, and did nothing else.
type HostWait struct {
	From, To trace.Time // on the clock of the host, as of an [Event]
	TID      int64      // of the thread that sent and received
	PID      int32
	// First tells that the recording has none before it: others may have waited for the profiler of some rank.
	First bool
}

// HoldUp finds the collectives of hosts that held up the thread which asked for them: the last one that did so before
// they began, in one of callers, if it made none of the calls until they ended. A thread that goes on
// meanwhile calls the runtime within microseconds, if it has work for a device.
func (p *Profile) HoldUp(syms *trace.Symbols, calls []Launch, callers []CollectiveAnnotation) {
	var hosts []int
	for i := range p.Collectives.Len() {
		if k := &p.Collectives.Kinds()[p.Collectives.KindOf(i)]; !k.OnGPU && kernelname.MeetsOnHost(syms.Name(k.Name)) {
			hosts = append(hosts, i)
		}
	}
	if len(hosts) == 0 || len(callers) == 0 {
		return
	}
	slices.SortStableFunc(callers, func(a, b CollectiveAnnotation) int { return cmp.Compare(a.Time, b.Time) })
	threads := p.threads()
	made := map[int32][]trace.Time{} // by thread
	for i := range calls {
		thread := threads[calls[i].Row]
		made[thread] = append(made[thread], calls[i].Time)
	}
	for _, of := range made {
		slices.Sort(of)
	}
	for _, i := range hosts {
		c := p.Collectives.At(i)
		by := p.callerOf(&c, callers)
		if by == nil {
			continue
		}
		of := made[threads[by.Row]]
		next, _ := slices.BinarySearch(of, max(c.Time, by.Time+trace.Time(by.Dur)))
		if c.Held = next == len(of) || of[next] >= c.Time+trace.Time(c.Dur); c.Held {
			p.Collectives.Set(i, &c)
		}
	}
}

// callerOf returns the last of callers, in the order of time, before a collective of hosts in the same part; nil if there is none.
func (p *Profile) callerOf(c *Collective, callers []CollectiveAnnotation) *CollectiveAnnotation {
	n, _ := slices.BinarySearchFunc(callers, c.Time+1, func(x CollectiveAnnotation, t trace.Time) int { return cmp.Compare(x.Time, t) })
	for n > 0 {
		if n--; p.Rows[callers[n].Row].Part == p.Rows[c.Row].Part {
			return &callers[n]
		}
	}
	return nil
}

// HostWaits adds the waits of each rank to list. of tells the rank and the process that a part is, as for [Profile.Stream].
func (p *Profile) HostWaits(list [][]HostWait, of func(part string) (rank, pid int32)) {
	type place struct{ rank, at int32 }
	first := map[string]place{} // of list, by part
	for i := range p.Collectives.Len() {
		k := &p.Collectives.Kinds()[p.Collectives.KindOf(i)]
		if !k.Held {
			continue
		}
		part := p.Rows[k.Row].Part
		rank, pid := of(part)
		if rank < 0 {
			continue
		}
		w := HostWait{From: p.Collectives.Start(i), To: p.Collectives.End(i), TID: p.Rows[k.Row].TID, PID: pid}
		if f, ok := first[part]; !ok || w.From < list[rank][f.at].From {
			first[part] = place{rank, int32(len(list[rank]))}
		}
		list[rank] = append(list[rank], w)
	}
	for _, f := range first {
		list[f.rank][f.at].First = true
	}
}
