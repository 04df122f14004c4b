package hang

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/flight"
)

// mostFindings is how many causes are findings; the table has all.
const mostFindings = 5

// Findings are the causes.
func (h *Hang) Findings() ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "which rank keeps others in a collective", Of: "flight recorder dump", N: len(h.World) - len(h.Silent), Needed: 1}
	if judged.N == 0 {
		judged.Reason = "the input has no dumps of a flight recorder"
	}
	var list []finding.Finding
	for i := range h.Stuck {
		if s := &h.Stuck[i]; s.Cause && len(list) < mostFindings {
			list = append(list, h.finding(i))
		}
	}
	return list, judged
}

func (h *Hang) finding(i int) finding.Finding {
	s := &h.Stuck[i]
	f := finding.Finding{Topic: s.Kind.String() + " " + s.Group, Since: s.Since, Text: h.Sentence(s), At: h.at(s),
		Cost: float64(len(s.HeldUp)) / float64(len(h.World)), Whose: finding.Ranks, Confidence: finding.Certain}
	if s.Kind == NoDump || s.Kind == AllEntered || !s.Certain {
		f.Confidence = finding.Likely
	}
	f.Evidence = h.evidence(i)
	return f
}

// at is the rank that is the cause, if it is one.
func (h *Hang) at(s *Stuck) place.Where {
	for _, list := range [][]int32{s.Absent, s.Differ, s.Silent} {
		if len(list) == 1 && !s.Even {
			return place.Named(fmt.Sprintf("rank %d", list[0]))
		}
	}
	return place.Where{}
}

// evidence is what else speaks for a cause.
func (h *Hang) evidence(i int) (list []finding.Evidence) {
	s := &h.Stuck[i]
	say := func(format string, args ...any) { list = append(list, finding.Sentence(format, args...)) }
	h.sayAbsent(s, say)
	if s.Kind == AllEntered && len(s.Ended) == 0 {
		say("nobody is missing and nobody entered anything else: look for a link or a device that hangs, in NCCL's log and for Xid in dmesg")
	}
	if at := h.place(s.Stack); at != "" {
		say("those that wait entered it at %s", at)
	}
	behind, ranks := 0, 0
	for k := range h.Stuck {
		if o := &h.Stuck[k]; o.Kind == Behind {
			behind++
			ranks += len(o.heads)
		}
	}
	if behind > 0 && i == 0 {
		say("%s stand behind it, in which %s wait", words.Counted(behind, "other operation"), words.Counted(ranks, "rank"))
	}
	if len(s.Silent) > 0 && s.Kind != NoDump {
		say("%s of the group %s no dump: whether they entered it is not known", named(s.Silent), have(s.Silent))
	}
	return list
}

// sayAbsent says where the ranks that are missing are.
func (h *Hang) sayAbsent(s *Stuck, say func(string, ...any)) {
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
	if len(nothing) > 0 {
		say("%s %s nothing in flight: look for what the Python process does, with py-spy", named(nothing), have(nothing))
	}
}

// head names what a rank waits in; "" is nothing.
func (h *Hang) head(r *Rank) (op *flight.Op, group string) {
	if r.Head == nil || r.head == nil {
		return r.Head, ""
	}
	return r.Head, r.head.title()
}
