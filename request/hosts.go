package request

import (
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Place returns the place of a proc, as the names of ranks are made of it.
func (s *Set) Place(proc int) naming.Place {
	p := &s.Procs[proc]
	return naming.Place{Role: p.Role.String(), Host: p.Host, Server: s.Server(proc), Rank: p.Rank}
}

// Places returns the places of the ranks: schedulers, or the servers of a role without
// any. Of other processes there are the hosts only.
func (s *Set) Places() []naming.Place {
	var schedules [Other + 1]bool
	for i := range s.Procs {
		schedules[s.Procs[i].Role] = schedules[s.Procs[i].Role] || s.Procs[i].Schedules
	}
	places := make([]naming.Place, len(s.Procs))
	for i := range s.Procs {
		p := &s.Procs[i]
		if places[i] = s.Place(i); !p.Schedules && (schedules[p.Role] || !slices.Contains(ServingRoles, p.Role)) {
			places[i] = naming.Place{Host: p.Host, Rank: trace.NoRank}
		}
	}
	return places
}

// RankName names the rank that a proc is, "decode DP1 TP0"; a process that is none, by its
// label and host.
func (s *Set) RankName(proc int) string {
	if !s.Procs[proc].Schedules {
		return s.ProcOn(proc)
	}
	return s.Names.Rank(s.Place(proc))
}

// ProcName names a proc among those of its server: "DP1 TP0 · decode scheduler".
func (s *Set) ProcName(proc int) string { return s.Names.Process(s.Place(proc), s.Procs[proc].Label) }

// ProcOn names a proc among all, with its server where that is needed.
func (s *Set) ProcOn(proc int) string { return s.Names.ProcessOn(s.Place(proc), s.Procs[proc].Label) }

// HostOf names the host of a proc.
func (s *Set) HostOf(proc int) string { return s.Names.Host(s.Procs[proc].Host) }

// ServerOf names the server of a proc: its host, and its number if others are there.
func (s *Set) ServerOf(proc int) string { return s.Names.Server(s.Procs[proc].Host, s.Server(proc)) }

// HostClocks relate the clocks of the hosts of a set. Reports see all times of a clock
// moved by one offset, that of the middle of the set, so that durations stay what was
// recorded; [HostClocks.Drifted] tells how much more a clock has drifted at an instant.
type HostClocks struct {
	moved  bool
	of     []int // clock, by proc
	fits   []align.ClockFit
	shifts []trace.Time // by clock: what is added to its times
}

// ClockSlack is how far an effect may come before its cause on any clock, in ns.
const ClockSlack = align.ClockSlack

// A ClockKey tells clocks apart. Spans without a host (gateways, containers without
// a machine id) have one clock per role.
type ClockKey struct {
	Host string
	Role Role
}

// ClockKey tells which clock a proc reads.
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

// HostClocks finds out how the clocks of s relate to that of the first proc, as far as its
// requests prove that they differ: see [Set.ClockBounds], and align for what
// proves it.
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

// NewHostClocks returns clocks that were related elsewhere, clockOf being the clock of a proc.
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

// Moves reports whether the times of any proc are moved. Without a solution none are.
func (c *HostClocks) Moves() bool { return c != nil && c.moved }

// Several reports whether there are hosts whose clocks may differ.
func (c *HostClocks) Several() bool { return len(c.fits) > 1 }

// Most returns the longest time by which any clock is moved, in ns.
func (c *HostClocks) Most() trace.Time {
	most := trace.Time(0)
	for _, shift := range c.shifts {
		most = max(most, shift, -shift)
	}
	return most
}

// Shift returns what is to be added to the times of a proc.
func (c *HostClocks) Shift(proc int) trace.Time { return c.shifts[c.of[proc]] }

// Drifted returns what is to be added, at about the given instant, to a time of proc p that
// was shifted to have the time of proc q. It is the same for all of a request, so that no
// duration changes. Without a solution it is 0.
func (c *HostClocks) Drifted(p, q int, at trace.Time) trace.Time {
	if !c.Moves() || p == None || q == None || c.of[p] == c.of[q] {
		return 0
	}
	return c.rest(c.of[p], at) - c.rest(c.of[q], at)
}

// rest returns by how much the shift of a clock is too little at a shifted time.
func (c *HostClocks) rest(clock int, at trace.Time) trace.Time {
	if c.fits[clock].DriftPPB == 0 {
		return 0
	}
	local := at - c.shifts[clock]
	return trace.Time(c.fits[clock].ToReference(int64(local))) - at
}
