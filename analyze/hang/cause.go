package hang

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// follow finds ranks on which a collective ended that does not end on others, and whose first one in flight is a
// later one of the same group. Collectives of a group run one after another, so these ranks wait for the others, too.
func (h *Hang) follow() {
	for i := range h.Stuck {
		s := &h.Stuck[i]
		for _, r := range s.Ended {
			if x := h.ranks[r]; x.Stuck < 0 && x.Head != nil && x.head == s.of && !x.Head.IsP2P() {
				x.Stuck = i
				s.heads = append(s.heads, r)
			}
		}
	}
}

// relate finds out what the ranks that something waits for wait in themselves: ranks that are missing,
// and ranks that are in it, but behind something else. What ranks without a dump wait in is unknown.
func (h *Hang) relate() {
	for i := range h.Stuck {
		s := &h.Stuck[i]
		s.free = len(s.Differ) > 0
		for _, r := range slices.Concat(s.Waiting, s.Differ, s.Absent) {
			switch k := h.ranks[r].Stuck; {
			case k == i:
			case k < 0:
				s.free = s.free || slices.Contains(s.Absent, r)
			case !slices.Contains(s.next, k):
				s.next = append(s.next, k)
			}
		}
		slices.Sort(s.next)
	}
}

// settle tells causes from their consequences, and puts causes first.
func (h *Hang) settle() {
	any := false
	for i := range h.Stuck {
		s := &h.Stuck[i]
		s.Cause = len(s.heads) > 0 && (s.free || len(s.next) == 0)
		any = any || s.Cause
	}
	for i := range h.Stuck {
		s := &h.Stuck[i]
		if !any && len(s.heads) > 0 && h.reaches(i, i) {
			s.Cause, s.Kind = true, Deadlock
		}
		if !s.Cause {
			s.Kind = Behind
		}
	}
	h.heldUp()
	h.blame()
	sorted, place := make([]Stuck, len(h.Stuck)), make([]int, len(h.Stuck))
	for to, from := range h.order() {
		sorted[to], place[from] = h.Stuck[from], to
	}
	h.Stuck = sorted
	for i := range h.Stuck {
		for k, n := range h.Stuck[i].next {
			h.Stuck[i].next[k] = place[n]
		}
	}
	for _, r := range h.ranks {
		if r.Stuck >= 0 {
			r.Stuck = place[r.Stuck]
		}
	}
	for _, r := range h.World {
		h.Ranks = append(h.Ranks, *h.ranks[r])
	}
}

// order returns the indices of Stuck in the order in which people read them.
func (h *Hang) order() []int {
	return order.Sorted(len(h.Stuck), func(a, b int) int {
		x, y := &h.Stuck[a], &h.Stuck[b]
		return cmp.Or(cmp.Compare(rung(x), rung(y)), cmp.Compare(len(y.HeldUp), len(x.HeldUp)), compareSince(x, y))
	})
}

// blame merges causes that wait for the same ranks into one: the first one, which says most.
func (h *Hang) blame() {
	var leads []int
	for _, i := range h.order() {
		s := &h.Stuck[i]
		if !s.Cause || s.Kind != NotEntered && s.Kind != Unmatched && s.Kind != NoDump {
			continue
		}
		mine := s.Absent // ranks that are known to be missing explain it; those without a dump may not
		if len(mine) == 0 {
			mine = s.Silent
		}
		k := slices.IndexFunc(leads, func(k int) bool {
			o := &h.Stuck[k]
			return !slices.ContainsFunc(mine, func(r int32) bool { return !slices.Contains(o.Absent, r) && !slices.Contains(o.Silent, r) })
		})
		if k < 0 {
			leads = append(leads, i)
			continue
		}
		lead := &h.Stuck[leads[k]]
		lead.HeldUp = slices.Concat(lead.HeldUp, s.HeldUp)
		lead.HeldUp = order.Distinct(lead.HeldUp)
		s.Cause, s.Kind, s.HeldUp = false, Behind, nil
	}
}

// rung ranks what the dumps prove before what they leave open.
func rung(s *Stuck) int {
	switch {
	case !s.Cause:
		return 3
	case s.Kind == AllEntered || s.Kind == Alone || s.Hearsay:
		return 2
	case s.Kind == NoDump:
		return 1
	}
	return 0
}

func compareSince(x, y *Stuck) int {
	if x.Since == 0 || y.Since == 0 {
		return cmp.Compare(y.Since, x.Since)
	}
	return cmp.Compare(x.Since, y.Since)
}

// reaches reports whether ranks in a wait, directly or not, for ranks in b.
func (h *Hang) reaches(a, b int) bool {
	seen := make([]bool, len(h.Stuck))
	todo := slices.Clone(h.Stuck[a].next)
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if k == b {
			return true
		}
		if !seen[k] {
			seen[k] = true
			todo = append(todo, h.Stuck[k].next...)
		}
	}
	return false
}

// heldUp finds all ranks that wait for each cause: those in it, and those in everything that waits for these.
func (h *Hang) heldUp() {
	waitsFor := make([][]int, len(h.Stuck)) // next, reversed
	for i := range h.Stuck {
		for _, k := range h.Stuck[i].next {
			waitsFor[k] = append(waitsFor[k], i)
		}
	}
	for i := range h.Stuck {
		s := &h.Stuck[i]
		if !s.Cause {
			continue
		}
		seen := make([]bool, len(h.Stuck))
		todo := []int{i}
		for len(todo) > 0 {
			k := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[k] {
				continue
			}
			seen[k] = true
			s.HeldUp = append(s.HeldUp, h.Stuck[k].heads...)
			todo = append(todo, waitsFor[k]...)
		}
		s.HeldUp = order.Distinct(s.HeldUp)
	}
}
