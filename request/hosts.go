package request

import (
	"slices"

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
