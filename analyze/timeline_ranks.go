package analyze

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Where is where a series was measured: everywhere, in all servers of a role,
// or on one rank.
type Where struct {
	Scope Scope
	Role  request.Role // unless everywhere
	Host  string       // of a rank, as reports print it; "?" is unknown
	// Server is the number of a rank's server among those of its role and host; 0 is
	// the only one.
	Server int
	Label  string     // of a rank
	Rank   trace.Rank // of a rank
}

// newWhere returns the place of a proc, given the names of hosts.
func newWhere(s *request.Set, hosts map[string]string, proc int) Where {
	p := &s.Procs[proc]
	return Where{OneRank, p.Role, hosts[p.Host], s.Server(proc), p.Label, p.Rank}
}

// serverName names the server of a rank: "c94b1e02 #2".
func (p *Where) serverName() string { return words.OnServer(p.Host, p.Server) }

// Scope is how much a Where covers.
type Scope uint8

const (
	Everywhere Scope = iota
	WholeRole
	OneRank
)

// String returns the word that reports print.
func (s Scope) String() string { return [...]string{"all", "role", "rank"}[s] }

// String names the place for people: "all", "decode", "decode c94b1e02 TP0-PP0-DP1".
func (p *Where) String() string {
	switch p.Scope {
	case Everywhere:
		return "all"
	case WholeRole:
		return p.Role.String()
	}
	rank := p.Rank.String()
	if rank == "" {
		rank = p.Label
	}
	return words.JoinNonEmpty(" ", p.Role.String(), p.serverName(), rank)
}

// A rankSet has the scheduler ranks of a set, or of roles without any the servers. A
// server that was started anew is the rank that it was before.
type rankSet struct {
	set    *request.Set
	places []Where
	at     map[Where]int32 // index of each place
	of     []int32         // of every proc; None if it is none
	bare   [request.Other + 1]bool
	// leads tells of the ranks which stand for those that do the same work beside
	// them: the lowest of them, and not one that does now and then as the thread of
	// the lowest is missing.
	leads []bool
}

// newRankSet finds the ranks that work for the requests of s, in order of display.
func newRankSet(s *request.Set) *rankSet {
	r := &rankSet{set: s, at: map[Where]int32{}, of: make([]int32, len(s.Procs))}
	for role := range r.bare {
		r.bare[role] = true
	}
	working := make([]bool, len(s.Procs))
	r.eachPart(func(p *request.Part) {
		for _, t := range p.Threads {
			proc := s.Threads[t].Proc
			if s.Procs[proc].Schedules {
				working[proc], r.bare[p.Role] = true, false
			}
		}
	})
	r.eachPart(func(p *request.Part) {
		if r.isBare(p) && p.Proc != request.None {
			working[p.Proc] = true
		}
	})
	hosts := s.HostNames()
	for _, i := range byServer(s) {
		r.of[i] = request.None
		if !working[i] {
			continue
		}
		place := newWhere(s, hosts, i)
		id, ok := r.at[place]
		if !ok {
			id = int32(len(r.places))
			r.at[place] = id
			r.places = append(r.places, place)
		}
		r.of[i] = id
	}
	r.findLeads()
	return r
}

// byServer returns the procs of s in the order of display, those of each server of a
// host together.
func byServer(s *request.Set) []int {
	order := make([]int, len(s.Procs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		if p, o := &s.Procs[x], &s.Procs[y]; p.Role != o.Role || p.Host != o.Host {
			return x - y
		}
		return s.Server(x) - s.Server(y)
	})
	return order
}

// findLeads finds the ranks that lead most of the parts that they work on.
func (r *rankSet) findLeads() {
	parts, leads := make([]int, len(r.places)), make([]int, len(r.places))
	r.eachPart(func(p *request.Part) {
		thread, rank := r.lead(p)
		if rank != request.None && thread == request.None {
			parts[rank]++
		}
		for _, t := range p.Threads {
			if of := r.of[r.set.Threads[t].Proc]; of != request.None {
				parts[of]++
			}
		}
		if rank != request.None {
			leads[rank]++
		}
	})
	r.leads = make([]bool, len(r.places))
	for i := range r.leads {
		r.leads[i] = 2*leads[i] > parts[i]
	}
}

// eachPart calls f for the parts of servers that compute.
func (r *rankSet) eachPart(f func(p *request.Part)) {
	for i := range r.set.Requests {
		for _, p := range r.set.Requests[i].Parts {
			if part := &r.set.Parts[p]; part.Serves() {
				f(part)
			}
		}
	}
}

// isBare tells whether a part is all that its server tells, as vLLM's are. Where
// other servers of its role tell of their ranks it has lost its threads.
func (r *rankSet) isBare(p *request.Part) bool { return len(p.Threads) == 0 && r.bare[p.Role] }

// lead returns the thread and the rank that stand for part p: the lowest of the
// scheduler ranks that did its work side by side. Both may be None.
func (r *rankSet) lead(p *request.Part) (thread, rank int) {
	if r.isBare(p) && p.Proc != request.None {
		return request.None, int(r.of[p.Proc])
	}
	thread = r.set.Lead(p)
	if thread == request.None {
		return thread, request.None
	}
	return thread, int(r.of[r.set.Threads[thread].Proc])
}
