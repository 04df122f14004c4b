package request

import (
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// host returns what tells the server of a proc from others: its host, or the name of its service if it records no host, as vLLM.
func (s *Set) host(proc int) string {
	p := &s.Procs[proc]
	if p.Host == "" && p.Label == p.Service && slices.Contains(ServingRoles, p.Role) {
		return p.Service
	}
	return p.Host
}

// Place returns the place of a proc, from which names of ranks are made.
func (s *Set) Place(proc int) naming.Place {
	p := &s.Procs[proc]
	return naming.Place{Role: p.Role.String(), Host: s.host(proc), Server: s.Server(proc), Rank: p.Rank}
}

// Places returns the places of the ranks: schedulers, or the servers of a role that has none. Other
// processes contribute only their hosts.
func (s *Set) Places() []naming.Place {
	var schedules [Other + 1]bool
	for i := range s.Procs {
		schedules[s.Procs[i].Role] = schedules[s.Procs[i].Role] || s.Procs[i].Schedules
	}
	places := make([]naming.Place, len(s.Procs))
	for i := range s.Procs {
		p := &s.Procs[i]
		if places[i] = s.Place(i); !p.Schedules && (schedules[p.Role] || !slices.Contains(ServingRoles, p.Role)) {
			places[i] = naming.Place{Host: places[i].Host, Rank: trace.NoRank}
		}
	}
	return places
}

// RankName names the rank of a proc, "decode DP1 TP0"; a process that is not a rank is named by label and
// host. It returns "" for None, as HostOf does.
func (s *Set) RankName(proc int) string {
	if proc == None {
		return ""
	}
	if !s.Procs[proc].Schedules {
		return s.ProcOn(proc)
	}
	return s.Names.Rank(s.Place(proc))
}

// ProcName names a proc within its server: "DP1 TP0 · decode scheduler".
func (s *Set) ProcName(proc int) string { return s.Names.Process(s.Place(proc), s.Procs[proc].Label) }

// ProcOn names a proc among all procs, including its server if needed.
func (s *Set) ProcOn(proc int) string { return s.Names.ProcessOn(s.Place(proc), s.Procs[proc].Label) }

// HostOf names the host of a proc.
func (s *Set) HostOf(proc int) string {
	if proc == None {
		return ""
	}
	return s.Names.Host(s.host(proc))
}

// ServerOf names the server of a proc: its host, with a number if the host has several.
func (s *Set) ServerOf(proc int) string { return s.Names.Server(s.host(proc), s.Server(proc)) }

// HostClocks relate the clocks of a set's hosts. In reports, all times of a clock are moved by one offset,
// which holds in the middle of the set, so that durations stay as recorded; [HostClocks.Drifted] returns
// how much more a clock has drifted at an instant.
type HostClocks struct {
	moved  bool
	of     []int // index of the clock, by proc
	fits   []align.ClockFit
	shifts []trace.Time // by clock: added to its times
}

// ClockSlack is how far an effect may precede its cause, on any clock, in ns.
const ClockSlack = align.ClockSlack

// A ClockKey identifies a clock. Spans without a host (gateways, containers without a machine ID) have one
// clock per role.
type ClockKey struct {
	Host string
	Role Role
}

// ClockKey returns the key of the clock of a proc.
func (s *Set) ClockKey(proc int) ClockKey {
	p := &s.Procs[proc]
	key := ClockKey{Host: p.Host}
	switch {
	case p.Instance == trace.ByFrontend:
		key.Host = p.Instance
	case p.Host == "":
		key.Role = p.Role
	}
	return key
}

// HostClocks determines how the clocks of s relate to that of the first proc, as far as requests prove that
// they differ: see [Set.ClockBounds], and package align for what counts as proof.
func (s *Set) HostClocks() *HostClocks {
	index := map[ClockKey]int{}
	for p := range s.Procs {
		key := s.ClockKey(p)
		if _, ok := index[key]; !ok {
			index[key] = len(index)
		}
	}
	clockOf := func(p int) int { return index[s.ClockKey(p)] }
	fits := make([]align.ClockFit, len(index))
	if len(index) > 1 {
		claims := slices.Repeat([]bool{true}, len(index))
		bounds := s.ClockBounds(clockOf)
		fits = align.Solve(align.Problem{Clocks: len(index), Bounds: bounds, Claims: claims}).Clocks
		memory.Free(bounds)
	}
	return s.NewHostClocks(clockOf, fits)
}

// NewHostClocks returns clocks that were related elsewhere; clockOf returns the clock of a proc.
func (s *Set) NewHostClocks(clockOf func(proc int) int, fits []align.ClockFit) *HostClocks {
	first, last, _ := s.Bounds()
	middle := int64(first + (last-first)/2)
	c := &HostClocks{of: make([]int, len(s.Procs)), fits: fits, shifts: make([]trace.Time, len(fits))}
	for p := range s.Procs {
		i := clockOf(p)
		c.of[p] = i
		c.moved = c.moved || fits[i].Moves()
		c.shifts[i] = trace.Time(fits[i].ToReference(middle) - middle)
	}
	return c
}

// Moves reports whether the times of any proc are moved; false if c is nil.
func (c *HostClocks) Moves() bool { return c != nil && c.moved }

// Several reports whether there is more than one clock.
func (c *HostClocks) Several() bool { return len(c.fits) > 1 }

// Most returns the largest absolute shift of any clock, in ns.
func (c *HostClocks) Most() trace.Time {
	most := trace.Time(0)
	for _, shift := range c.shifts {
		most = max(most, shift, -shift)
	}
	return most
}

// Shift returns what to add to the times of a proc.
func (c *HostClocks) Shift(proc int) trace.Time { return c.shifts[c.of[proc]] }

// Drifted returns what to add to a shifted time of proc p, around the given instant, to convert it to the
// time of proc q. The caller uses one instant for all of a request, so that no duration changes. It is 0 if
// c is nil.
func (c *HostClocks) Drifted(p, q int, at trace.Time) trace.Time {
	if !c.Moves() || p == None || q == None || c.of[p] == c.of[q] {
		return 0
	}
	return c.rest(c.of[p], at) - c.rest(c.of[q], at)
}

// rest returns by how much the shift of a clock falls short at a shifted time.
func (c *HostClocks) rest(clock int, at trace.Time) trace.Time {
	if c.fits[clock].DriftPPB == 0 {
		return 0
	}
	local := at - c.shifts[clock]
	return trace.Time(c.fits[clock].ToReference(int64(local))) - at
}
