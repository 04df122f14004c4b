package cluster

import (
	"fmt"

	"github.com/sgtrace/sgtrace/golden/otlp"
)

// thread writes the activity of one process for a half: slices as they end, then the thread.
type thread struct {
	*tree
	process  int
	late     int64 // delay of everything after the first rank
	from, to int64
	remote   bool // on a scheduler: the sender is another process
	reason   string

	id   uint64
	last otlp.Ref   // the last outer slice
	open *otlp.Span // decode_forward, which ends with the thread
}

// begin gives the thread its id.
func (k *thread) begin() {
	if k.id != 0 {
		return
	}
	k.id = otlp.NewSpanID(k.rng)
	if k.remote {
		k.last = k.tree.last
		k.last.Flags = otlp.FlagRemote
	}
}

// at returns the time that the process writes for a true time.
func (k *thread) at(t int64) int64 { return otlp.Grid(k.clock.At(t + k.late)) }

// slice writes a slice, if it has begun and ended. It links to the previous one.
func (k *thread) slice(name string, level int, from, to int64) {
	s := k.outer(name, level, from)
	if s != nil && to != 0 {
		s.End = k.at(to)
		k.put(k.process, to+k.late, s)
	}
}

// outer makes a slice without ending it.
func (k *thread) outer(name string, level int, from int64) *otlp.Span {
	k.begin()
	if from == 0 || level > k.run.Config.Level {
		return nil
	}
	s := &otlp.Span{Trace: k.trace, ID: otlp.NewSpanID(k.rng), Parent: k.id, Flags: otlp.FlagLocal, Name: name, Start: k.at(from)}
	if k.last.ID != 0 {
		link := k.last
		s.Link = &link
	}
	k.last = otlp.Ref{ID: s.ID, Flags: otlp.FlagLocal}
	return s
}

// inner writes a slice inside the slice in.
func (k *thread) inner(in *otlp.Span, name string, from, to int64, count, batch int) {
	s := &otlp.Span{Trace: k.trace, ID: otlp.NewSpanID(k.rng), Parent: in.ID, Flags: otlp.FlagLocal, Name: name, Start: k.at(from), End: k.at(to)}
	if count >= 0 {
		s.Attributes.Integer("decode_ct", int64(count))
		s.Events = append(s.Events, k.schedule(from+110*us, batch, "decode"))
	}
	k.put(k.process, to+k.late, s)
}

// schedule returns the event that a batch is scheduled.
func (k *thread) schedule(at int64, batch int, mode string) otlp.Event {
	e := otlp.Event{At: k.at(at), Name: "schedule"}
	e.Attributes.Text("bid", fmt.Sprintf("%08x", k.rng.Uint32()))
	e.Attributes.Integer("batch_size", int64(batch))
	e.Attributes.Text("forward_mode", mode)
	return e
}

// prefill writes the slice of the prefill, and of its chunks.
func (k *thread) prefill() {
	h := k.half
	s := k.outer("prefill_forward", 1, h.Formed)
	if s == nil {
		return
	}
	if k.run.Config.Level >= 3 {
		s.Events = append(s.Events, k.schedule(h.Formed+110*us, h.Batches[0], "prefill"))
		if h.Scheduled != 0 && h.Scheduled-h.Prefilled < ms { // the next step is scheduled while this one runs
			s.Events = append(s.Events, k.schedule(h.Formed+420*us, h.Batches[min(1, len(h.Batches)-1)], "decode"))
		}
		from := h.Formed
		for _, to := range h.Chunks {
			k.inner(s, "chunked_prefill", from, to, -1, 0)
			from = to
		}
	}
	if h.Prefilled != 0 {
		s.End = k.at(h.Prefilled)
		k.put(k.process, h.Prefilled+k.late, s)
	}
}

// decode writes the slices of the decode steps, from when the prefill was done.
func (k *thread) decode(from int64) {
	h := k.half
	if h.Scheduled != 0 && h.Prebuilt == 0 && h.Scheduled-from >= ms {
		k.slice("decode_waiting", 1, from, h.Scheduled)
		from = h.Scheduled
	}
	if h.Scheduled == 0 && h.Prebuilt == 0 {
		return
	}
	s := k.outer("decode_forward", 1, from)
	k.open = s
	for _, at := range h.Retracted {
		s.Events = append(s.Events, otlp.Event{At: k.at(at), Name: "retract"})
	}
	if k.run.Config.Level < 3 {
		return
	}
	batches := h.Batches
	if h.Prebuilt != 0 {
		k.inner(s, "fake_output", from, h.Prebuilt, -1, 0)
		from = h.Prebuilt
	} else {
		batches = batches[1:]
	}
	for i, to := range h.Tokens {
		k.inner(s, "decode_loop", from, to, i, batches[i])
		from = to
	}
}

// close ends the thread, and everything open in it.
func (k *thread) close() {
	k.begin()
	if k.to == 0 {
		return
	}
	if k.open != nil {
		k.open.End = k.clock.At(k.to + k.late)
		k.put(k.process, k.to+k.late, k.open)
	}
	p := &k.run.Processes[k.process]
	who := otlp.Process{Label: p.Label, HostID: k.run.Hosts[p.Host].ID, TP: p.TP, DP: p.DP, PID: p.PID}
	if p.TP < 0 {
		who.PP = -1
	}
	out := &otlp.Span{
		Trace: k.trace, ID: k.id, Parent: k.root, Flags: otlp.FlagLocal, Name: who.ThreadName(),
		Start: k.clock.At(k.from + k.late), End: k.clock.At(k.to + k.late), Attributes: who.ThreadAttributes(),
	}
	if k.remote {
		out.Flags = otlp.FlagRemote
	} else {
		out.Start, out.End = otlp.Grid(out.Start), otlp.Grid(out.End)
	}
	if k.reason != "" {
		out.Attributes.Text("reason", k.reason)
		out.Failed = true
	}
	k.put(k.process, k.to+k.late, out)
}
