package profile

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A HostWait is a time during which a rank was in a collective in which hosts wait for each other, and did
// nothing else.
type HostWait struct {
	From, To trace.Time // on the clock of the host, as in an [Event]
	TID      int64      // of the thread that communicated
	PID      int32
	// First means that it is the first one in the recording: others may have waited for some rank's profiler to
	// start.
	First bool
}

// SettleHosts completes the collectives of hosts. A rank's part begins when the data that it sends is ready,
// after its thread has waited for the device in syncs. A collective holds up the thread that requested it, the
// one of the last event in callers before it, if that thread makes none of the calls until it ends. A thread
// that is not held up calls the runtime within microseconds, if it has work for a device.
func (p *Profile) SettleHosts(syms *trace.Symbols, calls []Launch, callers, syncs []CollectiveAnnotation) {
	var hosts []int
	for i := range p.Collectives.Len() {
		if k := &p.Collectives.Kinds()[p.Collectives.KindOf(i)]; !k.OnGPU && kernelname.WaitsOnHost(syms.Name(k.Name)) {
			hosts = append(hosts, i)
		}
	}
	if len(hosts) == 0 {
		return
	}
	threads := p.threads()
	waits := map[int32][]CollectiveAnnotation{} // by thread
	for _, x := range syncs {
		waits[threads[x.Row]] = append(waits[threads[x.Row]], x)
	}
	for _, of := range waits {
		slices.SortStableFunc(of, func(a, b CollectiveAnnotation) int { return cmp.Compare(a.Time, b.Time) })
	}
	made := map[int32][]trace.Time{} // by thread
	for i := range calls {
		thread := threads[calls[i].Row]
		made[thread] = append(made[thread], calls[i].Time)
	}
	for _, of := range made {
		slices.Sort(of)
	}
	slices.SortStableFunc(callers, func(a, b CollectiveAnnotation) int { return cmp.Compare(a.Time, b.Time) })
	for _, i := range hosts {
		c := p.Collectives.At(i)
		if by := p.callerOf(&c, callers); by != nil && kernelname.MeetsOnHost(syms.Name(c.Name)) {
			of := made[threads[by.Row]]
			next, _ := slices.BinarySearch(of, max(c.Time, by.Time+trace.Time(by.Dur)))
			c.Held = next == len(of) || of[next] >= c.Time+trace.Time(c.Dur)
		}
		if c.GroupSize <= 0 && p.Meta.HostGroup > 0 {
			c.GroupSize = p.Meta.HostGroup
		}
		c.comeAfter(waits[threads[c.Row]])
		p.Collectives.Set(i, &c)
	}
}

// betweenSyncs is the longest time, in ns, from the start of a collective of hosts to the first call that waits
// for the data to send, and from one such call to the next.
const betweenSyncs = 100_000

// comeAfter moves the start of a collective of hosts to the time when its thread has finished waiting for the
// device, in the first syncs in it. These are in order.
func (c *Collective) comeAfter(syncs []CollectiveAnnotation) {
	end := c.Time + trace.Time(c.Dur)
	i, _ := slices.BinarySearchFunc(syncs, c.Time, func(x CollectiveAnnotation, t trace.Time) int { return cmp.Compare(x.Time, t) })
	from := c.Time
	for ; i < len(syncs) && syncs[i].Time <= from+betweenSyncs && syncs[i].Time < end; i++ {
		from = min(end, syncs[i].Time+trace.Time(syncs[i].Dur))
	}
	c.Time, c.Dur = from, int64(end-from)
}

// callerOf returns the last of callers, which are in order of time, at or before the start of a collective of
// hosts in the same part; nil if there is none.
func (p *Profile) callerOf(c *Collective, callers []CollectiveAnnotation) *CollectiveAnnotation {
	n, _ := slices.BinarySearchFunc(callers, c.Time+1, func(x CollectiveAnnotation, t trace.Time) int { return cmp.Compare(x.Time, t) })
	for n > 0 {
		if n--; p.Rows[callers[n].Row].Part == p.Rows[c.Row].Part {
			return &callers[n]
		}
	}
	return nil
}

// HostWaits adds the waits of each rank to list. of returns the rank and the process of a part, as for
// [Profile.Stream].
func (p *Profile) HostWaits(list [][]HostWait, of func(part string) (rank, pid int32)) {
	type place struct{ rank, at int32 }
	first := map[string]place{} // index in list, by part
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
