package hang

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// maxFindings is the most causes that are findings; the table has all.
const maxFindings = 5

// Findings returns the causes.
func (h *Hang) Findings() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "which rank keeps others in a collective", Of: "rank", N: len(h.World) - len(h.Silent), Needed: 1}
	if check.N == 0 {
		check.Reason = "the input has neither dumps of a flight recorder nor lines of PyTorch's watchdog or of NCCL"
	}
	most := maxFindings
	if h.by == recorder.NCCL { // without what ended, it is unknown which others only stand behind the first
		most = 1
	}
	var list []finding.Finding
	for i := range h.Stuck {
		if s := &h.Stuck[i]; s.Cause && !s.Hearsay && len(list) < most {
			list = append(list, h.finding(i))
		}
	}
	return list, check
}

func (h *Hang) finding(i int) finding.Finding {
	s := &h.Stuck[i]
	f := finding.Finding{Subkind: s.Kind.String() + " " + s.Group, Since: s.Since, Text: h.sentence(s), At: h.at(s),
		Cost: float64(len(s.HeldUp)) / float64(len(h.World)), CostBasis: finding.Ranks, Confidence: finding.Certain}
	if s.Kind == NoDump || s.Kind == AllEntered || s.Kind == Alone || !s.Certain {
		f.Confidence = finding.Likely
	}
	f.Evidence = h.evidence(i)
	return f
}

// at returns the rank that is the cause, if it is a single one.
func (h *Hang) at(s *Stuck) place.Location {
	for _, list := range [][]int32{s.Absent, s.Differ, s.Silent} {
		if len(list) == 1 && !s.Even {
			return place.Named(fmt.Sprintf("rank %d", list[0]))
		}
	}
	return place.Location{}
}

// evidence returns what else speaks for a cause.
func (h *Hang) evidence(i int) (list []finding.Evidence) {
	s := &h.Stuck[i]
	say := func(format string, args ...any) { list = append(list, finding.Sentence(format, args...)) }
	h.sayPython(slices.Concat(s.Absent, s.Differ), say)
	h.sayAbsent(s, say)
	if s.Kind == AllEntered {
		if len(s.Ended) == 0 {
			say("no rank is missing, and none entered anything else: look for a link or a device that hangs, in NCCL's log and for Xid in dmesg")
		} else {
			say("it ended for others, so it had the data of all ranks: look at the device of %s, and for Xid in its host's dmesg", named(s.Waiting))
		}
	}
	if s.Kind == Alone {
		h.sayPython(h.idle(), say)
		say("look for a log that is missing; if there is none, for a link or a device that hangs, in NCCL's log and for Xid in dmesg")
	}
	if at := h.place(s.Stack); at != "" {
		say("those that wait entered it at %s", at)
	}
	h.sayPython(s.Waiting, say)
	h.sayOthers(s, say)
	behind, ranks := 0, 0
	for k := range h.Stuck {
		if o := &h.Stuck[k]; o.Kind == Behind {
			behind++
			ranks += len(o.heads)
		}
	}
	if ranks > 0 && i == 0 {
		say("in %s behind it, %s wait", words.Counted(behind, "other operation"), words.Counted(ranks, "rank"))
	}
	if len(s.Silent) > 0 && s.Kind != NoDump {
		say("nothing tells whether %s of the group entered it", named(s.Silent))
	}
	return list
}

// sayAbsent says where the ranks that are missing are.
func (h *Hang) sayAbsent(s *Stuck, say func(string, ...any)) {
	if s.Kind == NoDump {
		var idle []int32 // ranks with a log in which the watchdog saw nothing time out
		for _, r := range s.Silent {
			if x := h.ranks[r]; x.Dump != nil && x.Pending == 0 {
				idle = append(idle, r)
			}
		}
		if len(idle) > 0 {
			say("the watchdog of %s reports nothing that timed out there", named(idle))
		}
		h.sayPython(s.Silent, say)
	}
	var nothing []int32
	for n, r := range s.Absent {
		x, m := h.ranks[r], s.of.members[r]
		if x.Pending == 0 {
			nothing = append(nothing, r)
		}
		if n > 0 || m == nil {
			continue
		}
		switch last := m.entered(); {
		case x.Head != nil:
			say("rank %d has %s in flight elsewhere, the first is %s", r, words.Counted(x.Pending, "operation"), h.text(x.Head.Name))
		case s.Seq >= 0 && last >= 0:
			say("the last collective of the group that rank %d entered is #%s", r, words.Thousands(last))
		}
		if x.Last != nil && x.Last.Stack >= 0 {
			say("rank %d was last seen in %s at %s", r, h.text(x.Last.Name), h.place(x.Dump.Stacks[x.Last.Stack]))
		}
	}
	if len(nothing) > 0 && h.by != recorder.NCCL {
		text := fmt.Sprintf("%s %s nothing in flight", named(nothing), hasOrHave(nothing))
		if !slices.ContainsFunc(nothing, func(r int32) bool { return h.python[r] != nil }) {
			text += ": use py-spy to see what the Python process does"
		}
		say("%s", text)
	}
	for _, r := range s.Absent {
		if d := h.ranks[r].Dump; d != nil && d.By == recorder.Watchdog {
			say("PyTorch counts a collective once the call of NCCL came back: %s may also hang inside that call", named(s.Absent))
			break
		}
	}
}

// sayOthers says which other sources agree: PyTorch's watchdog, besides its recorder, and logs of NCCL.
func (h *Hang) sayOthers(s *Stuck, say func(string, ...any)) {
	watched := last(h.Set.Dumps, recorder.Watchdog)
	var timedOut, stuck []int32
	for _, r := range h.World {
		d := watched[r]
		if d == nil {
			continue
		}
		if d.Stuck > 0 {
			stuck = append(stuck, r)
		}
		if slices.ContainsFunc(d.Ops, func(op recorder.Op) bool { return op.Seq == s.Seq }) && slices.Contains(s.Waiting, r) && h.ranks[r].Dump != d {
			timedOut = append(timedOut, r)
		}
	}
	if len(timedOut) > 0 {
		say("PyTorch's watchdog saw it time out on %s", named(timedOut))
	}
	if len(stuck) > 0 {
		say("the watchdog of %s made no progress for %d s: a CUDA or NCCL call hangs, or another thread holds the GIL", named(stuck), watched[stuck[0]].Stuck)
	}
	h.sayEnded(s, say)
	if h.nccl == nil {
		return
	}
	for i := range h.nccl.Stuck {
		o := &h.nccl.Stuck[i]
		if o.Cause && o.Kind == NotEntered && slices.ContainsFunc(o.Absent, func(r int32) bool { return slices.Contains(s.Absent, r) }) {
			say("NCCL's log agrees: %s", h.nccl.describe(o))
			return
		}
	}
}

// sayEnded says when a collective last ended, by NCCL's Inspector.
func (h *Hang) sayEnded(s *Stuck, say func(string, ...any)) {
	at, ranks := trace.Time(0), 0
	for r, d := range last(h.Set.Dumps, recorder.Inspector) {
		if slices.Contains(s.Of, r) {
			at, ranks = max(at, d.Time), ranks+1
		}
	}
	if at != 0 {
		say("NCCL Inspector: on %s of these, the last collective of 8 KiB or more ended at %s; it does not tell what has not ended", words.Counted(ranks, "rank"), words.At(at, words.ClockLayout))
	}
}

// group returns the name of the group of the operation that a rank waits in; "" if there is none.
func (r *Rank) group() string {
	if r.Head == nil || r.head == nil {
		return ""
	}
	return r.head.title()
}
