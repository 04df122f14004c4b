package request

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// inOrder lists the stages that a request passes through on a server's scheduler, by role.
var inOrder = [Other + 1][]Meaning{
	Unified: {Queueing, Prefilling, Answering},
	Prefill: {SendPreparing, SendConnecting, Queueing, Prefilling, Sending},
	Decode:  {ReceivePreparing, ReceiveConnecting, Receiving, DecodeQueueing, Answering},
}

// An Open is a stage that a part was in when it was given up, or still is in when the dump ends. Processes write a
// stage when it ends, so no row shows an open one: it began when the previous one ended.
type Open struct {
	Interval         // on the clock of the part's host
	Means    Meaning // NoMeaning: it is on its way to the scheduler
}

// An OpenFinder has the information needed to find open stages.
type OpenFinder struct {
	set  *Set
	last []trace.Time                 // last sign of life, by proc
	ends [Other + 1][Caching + 1]bool // stages that occur, by role
	lost [][]trace.Time               // by proc, sorted times of missing rows
	// takesIn says that stages show when schedulers receive requests.
	takesIn bool
}

// OpenFinder returns the finder of the set. The rows are examined once, if any request may have an open stage.
func (s *Set) OpenFinder() *OpenFinder {
	s.openOnce.Do(func() { s.open = newOpenFinder(s) })
	return s.open
}

func newOpenFinder(s *Set) *OpenFinder {
	f := &OpenFinder{set: s, last: make([]trace.Time, len(s.Procs)), lost: make([][]trace.Time, len(s.Procs))}
	if !slices.ContainsFunc(s.Requests, func(r Request) bool { return !s.Answered(&r) }) {
		return f
	}
	for _, m := range s.Missing {
		if m.Proc != None {
			f.lost[m.Proc] = append(f.lost[m.Proc], m.Time)
		}
	}
	for p := range f.lost {
		slices.Sort(f.lost[p])
	}
	parallel.Fold(len(s.Rows), RowSize, func() *OpenFinder { return &OpenFinder{last: make([]trace.Time, len(f.last))} }, func(x *OpenFinder, from, to int) {
		for i := from; i < to; i++ {
			row := &s.Rows[i]
			if row.Proc == None || row.Kind == Duplicate || s.Implausible(i) {
				continue
			}
			x.last[row.Proc] = max(x.last[row.Proc], row.End)
			if row.Kind == Stage && row.Part != None {
				x.ends[s.Parts[row.Part].Role][row.Means] = true
				x.takesIn = x.takesIn || row.Phase == DispatchPhase && s.Procs[row.Proc].Schedules
			}
		}
	}, func(x *OpenFinder) {
		f.takesIn = f.takesIn || x.takesIn
		for p := range x.last {
			f.last[p] = max(f.last[p], x.last[p])
		}
		for role := range x.ends {
			for means, there := range x.ends[role] {
				f.ends[role][means] = f.ends[role][means] || there
			}
		}
	})
	return f
}

// Answered reports whether r was answered as far as the rows show: it has finished, and the answering server ended it.
func (s *Set) Answered(r *Request) bool {
	return r.Status == Finished && (r.Flags&MissingRoot == 0 || s.Parts[s.Answering(r)].Root != None)
}

// Of returns the stage that a part was in when it was given up, or at the last sign of life of its server; ok is false
// if there is none, or rows of it may be lost. A part that only a gateway's span ends was given up if its server went
// on without ending it.
func (f *OpenFinder) Of(p *Part) (o Open, ok bool) {
	s := f.set
	r := &s.Requests[p.Request]
	if !p.Serves() || s.Answered(r) || s.TurnedAway(r) {
		return o, false
	}
	lead := s.Lead(p)
	o.From, o.Means = f.follows(p, lead)
	switch {
	case o.From == 0:
		return o, false
	case lead != None && s.Threads[lead].Row != None: // the thread has ended
		if r.Status == Finished {
			return o, false
		}
		o.To = s.Threads[lead].End
	case f.isLost(p, o.From):
		return o, false
	default:
		sign := f.sign(p)
		if o.To = f.until(p, sign); r.Status == Finished && o.To == sign {
			return o, false // nothing later from the server is in the dump
		}
	}
	return o, o.To > o.From && Plausible(o.From, o.To)
}

// follows returns what follows the last stage of a part, on its lead thread, and since when; 0 is unknown.
func (f *OpenFinder) follows(p *Part, lead int) (since trace.Time, means Meaning) {
	s, order := f.set, inOrder[p.Role]
	if lead != None && len(s.StagesOf(lead)) > 0 {
		stages := s.StagesOf(lead)
		last := s.Row(int(slices.MaxFunc(stages, func(x, y uint32) int { return int(s.Row(int(x)).End - s.Row(int(y)).End) })))
		switch at := slices.Index(order, last.Means); {
		case last.Means.Phase() == DecodePhase, last.Means == DecodeQueueing:
			return last.End, Answering // the stage around the steps ends later
		case at == len(order)-1:
		case at >= 0:
			return last.End, f.next(p.Role, order[at+1:])
		case last.Phase == DispatchPhase:
			return last.End, f.next(p.Role, order)
		}
		return 0, NoMeaning
	}
	for _, t := range s.ThreadsOf(p) {
		for _, i := range s.StagesOf(t) {
			if row := s.Row(int(i)); row.Phase == DispatchPhase {
				since = max(since, row.End)
			}
		}
	}
	if !f.takesIn && p.Role == Unified {
		means = f.next(p.Role, order)
	}
	return since, means
}

// next returns the first of stages that servers of a role export.
func (f *OpenFinder) next(role Role, stages []Meaning) Meaning {
	for _, m := range stages {
		if f.ends[role][m] {
			return m
		}
	}
	return NoMeaning
}

// ExportDelay is how long a process may hold back what it has written, in ns: exporters wait from half a
// second (SGLang) to five seconds (the SDK's default).
const ExportDelay = 5_000_000_000

// isLost reports whether rows of a process of a part were lost around the time when the part may have ended.
func (f *OpenFinder) isLost(p *Part, since trace.Time) bool {
	return slices.ContainsFunc(f.set.ThreadsOf(p), func(t int) bool {
		lost := f.lost[f.set.Threads[t].Proc]
		at, _ := slices.BinarySearch(lost, since)
		return at < len(lost) && lost[at] <= since+ExportDelay
	})
}

// sign returns the last sign of life of the procs that work on a part.
func (f *OpenFinder) sign(p *Part) (last trace.Time) {
	for _, t := range f.set.ThreadsOf(p) {
		last = max(last, f.last[f.set.Threads[t].Proc])
	}
	return last
}

// until returns when a part was given up while its server went on: when its own span ended, or the gateway's;
// otherwise, the last sign of life of its server.
func (f *OpenFinder) until(p *Part, sign trace.Time) trace.Time {
	s := f.set
	if p.Root != None {
		return p.End
	}
	r := &s.Requests[p.Request]
	if outer := s.OuterSpan(r); r.Status != Unfinished && outer != None {
		return min(sign, s.Row(outer).End+s.Clocks.Drifted(s.ProcOf(outer), p.Proc, r.Start))
	}
	return sign
}
