package place

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Location is where something was measured: everywhere, on all servers of a role, or on one rank.
type Location struct {
	Scope Scope
	Role  request.Role // unless Scope is Everywhere
	Host  string       // of a rank, as reports print it; "?" is unknown
	// Server is the number of a rank's server among those of its role and host; 0 if it is the only one.
	Server int
	Label  string     // of a rank
	Rank   trace.Rank // of a rank
	names  *naming.Names
	byTP   bool // the TP rank tells it from others of its server that work on other requests, as there is no DP rank
}

// NewLocation returns the location of a proc.
func NewLocation(s *request.Set, proc int) Location {
	p := &s.Procs[proc]
	return Location{OneRank, p.Role, s.HostOf(proc), s.Server(proc), p.Label, p.Rank, s.Names, false}
}

// ServerName names the server of a rank: "c94b1e02 #2".
func (p *Location) ServerName() string { return p.names.Server(p.Host, p.Server) }

// RankName names a rank within its server: "DP1 TP0". A process without ranks has its own name.
func (p *Location) RankName() string {
	if p.onlyNamed() {
		return p.Label
	}
	return p.names.Short(p.Rank)
}

// onlyNamed reports whether a location is known only by its name.
func (p *Location) onlyNamed() bool { return p.names == nil && p.Rank == trace.NoRank && p.Label != "" }

// DP names all ranks of a rank's server that share its DP rank, such as "decode DP1". Without a DP rank, these are
// all ranks of the server.
func (p Location) DP() string {
	return p.Team().Group()
}

// Team returns the location of all ranks that work on the requests of a rank: those of its server with its DP rank.
func (p Location) Team() Location {
	team := trace.Rank{TP: -1, PP: -1, DP: p.Rank.DP, EP: -1, Global: -1}
	if p.byTP {
		team.TP = p.Rank.TP
	}
	p.Rank, p.Label = team, ""
	return p
}

// Group names the ranks of a server that share the known parts of Rank: "decode DP1 PP0".
func (p Location) Group() string {
	return p.names.Rank(p.place())
}

// place returns the parts of a rank's name.
func (p *Location) place() naming.Place {
	host := p.Host
	if host == naming.Unknown {
		host = ""
	}
	role := p.Role.String()
	if p.Role == request.Other && p.names == nil { // no request mentions the rank, and its own name has no role: see Named
		role = ""
	}
	return naming.Place{Role: role, Host: host, Server: p.Server, Rank: p.Rank}
}

// Scope is how much a Location covers.
type Scope uint8

const (
	Everywhere Scope = iota
	WholeRole
	OneRank
)

// String returns the word that reports print.
func (s Scope) String() string { return [...]string{"all", "role", "rank"}[s] }

// String names the location for people: "all", "decode", "decode DP1 TP0".
func (p *Location) String() string {
	switch p.Scope {
	case Everywhere:
		return "all"
	case WholeRole:
		return p.Role.String()
	}
	if p.Rank == trace.NoRank && p.Label != "" {
		return p.names.ProcessOn(p.place(), p.Label)
	}
	return p.names.Rank(p.place())
}

// A RankSet holds the scheduler ranks of a set, or the servers of roles without any. A server that was restarted is
// the same rank as before.
type RankSet struct {
	Set    *request.Set
	Places []Location
	At     map[Location]int32 // index of each place
	Of     []int32            // place of every proc; None if it has none
	bare   [request.Other + 1]bool
	// Leads says which ranks stand for those that do the same work: the lowest of them. A rank that only leads now
	// and then, because the thread of the lowest is missing, does not.
	Leads []bool
	// Engine is the first of the leading ranks that take each step together with a rank, by rank.
	Engine  []int32
	leading map[serverAt][]int32 // the ranks that lead on each server
}

// A serverAt identifies a server.
type serverAt struct {
	role   request.Role
	host   string
	server int
}

// NewRankSet finds the ranks that work for the requests of s, in order of display.
func NewRankSet(s *request.Set) *RankSet {
	r := &RankSet{Set: s, At: map[Location]int32{}, Of: make([]int32, len(s.Procs))}
	for role := range r.bare {
		r.bare[role] = true
	}
	working := make([]bool, len(s.Procs))
	alone := make([][request.Other + 1]bool, len(s.Procs)) // working for parts of a role without threads
	for p := range r.Set.ServingParts {
		threads := s.ThreadsOf(p)
		if !r.hasThreads(p) && p.Proc != request.None {
			alone[p.Proc][p.Role] = true
		}
		for _, t := range threads {
			proc := s.Threads[t].Proc
			if s.Procs[proc].Schedules {
				working[proc], r.bare[p.Role] = true, false
			}
		}
	}
	for proc := range alone {
		for role, is := range alone[proc] {
			working[proc] = working[proc] || is && r.bare[role]
		}
	}
	for _, i := range byServer(s) {
		r.Of[i] = request.None
		if !working[i] {
			continue
		}
		place := NewLocation(s, i)
		id := order.At(r.At, &r.Places, place, func() Location { return place })
		r.Of[i] = id
	}
	r.findLeads()
	r.findEngines()
	return r
}

// byServer returns the procs of s in order of display, those of each server on a host together.
func byServer(s *request.Set) []int {
	return order.Sorted(len(s.Procs), func(x, y int) int {
		if p, o := &s.Procs[x], &s.Procs[y]; p.Role != o.Role || p.Host != o.Host {
			return x - y
		}
		return s.Server(x) - s.Server(y)
	})
}

// findLeads finds the ranks that lead most of the parts that they work on.
func (r *RankSet) findLeads() {
	parts, leads := make([]int, len(r.Places)), make([]int, len(r.Places))
	for p := range r.Set.ServingParts {
		thread, rank := r.Lead(p)
		if rank != request.None && thread == request.None {
			parts[rank]++
		}
		for _, t := range r.Set.ThreadsOf(p) {
			if of := r.Of[r.Set.Threads[t].Proc]; of != request.None {
				parts[of]++
			}
		}
		if rank != request.None {
			leads[rank]++
		}
	}
	r.Leads, r.leading = make([]bool, len(r.Places)), map[serverAt][]int32{}
	for i := range r.Leads {
		if r.Leads[i] = 2*leads[i] > parts[i]; r.Leads[i] {
			at := serverAt{r.Places[i].Role, r.Places[i].Host, r.Places[i].Server}
			r.leading[at] = append(r.leading[at], int32(i))
		}
	}
}

// findEngines finds the ranks that take each step together. With DP attention, the DP ranks of a server divide its TP
// ranks, and wait for each other in every step. DP ranks that are replicas have the same TP ranks, and each its own steps.
// Older servers record no DP ranks, but without DP attention, only the lowest TP rank leads.
func (r *RankSet) findEngines() {
	type step struct {
		server serverAt
		pp, tp int16
	}
	r.Engine = make([]int32, len(r.Places))
	dp, replicas, leading := map[step]int16{}, map[serverAt]bool{}, map[serverAt][]int32{}
	main := r.mainHosts()
	for i := range r.Places {
		r.Engine[i] = int32(i)
		p := &r.Places[i]
		at := main(serverAt{p.Role, p.Host, p.Server})
		rank := step{at, p.Rank.PP, p.Rank.TP}
		other, known := dp[rank]
		replicas[at] = replicas[at] || p.Rank.TP < 0 || known && other != p.Rank.DP
		if dp[rank] = p.Rank.DP; r.Leads[i] {
			leading[at] = append(leading[at], int32(i))
		}
	}
	for at, list := range leading {
		if !replicas[at] {
			slices.SortStableFunc(list, func(x, y int32) int { return int(r.Places[x].Rank.DP) - int(r.Places[y].Rank.DP) })
			r.leading[at] = list
			for _, i := range list {
				r.Engine[i] = list[0]
				if p := &r.Places[i]; len(list) > 1 && p.Rank.DP < 0 {
					p.byTP = true
					r.At[*p] = i
				}
			}
		}
	}
}

// mainHosts returns a function that returns where the front end of a server is, for each part of it: a server with ranks on
// several hosts has one front end, which sends requests to all of them.
func (r *RankSet) mainHosts() func(serverAt) serverAt {
	front := map[serverAt]serverAt{}
	for p := range r.Set.ServingParts {
		rank := r.Route(p)
		if rank == request.None || p.Proc == request.None || r.Set.Procs[p.Proc].Host == "" {
			continue
		}
		at := &r.Places[rank]
		if host := r.Set.HostOf(p.Proc); host != at.Host {
			front[serverAt{at.Role, at.Host, at.Server}] = serverAt{p.Role, host, r.Set.Server(p.Proc)}
		}
	}
	return func(at serverAt) serverAt {
		if main, ok := front[at]; ok {
			return main
		}
		return at
	}
}

// EngineAt returns the location of an engine by its first rank: that of its server, on the first host, if the engine has
// several ranks that lead.
func (r *RankSet) EngineAt(first int32) Location {
	at := r.Places[first]
	if r.EngineRanks(first) > 1 {
		at.Rank, at.Label, at.byTP = trace.NoRank, "", false
	}
	return at
}

// EngineRanks returns how many ranks of an engine lead.
func (r *RankSet) EngineRanks(first int32) (n int) {
	for i, e := range r.Engine {
		if e == first && r.Leads[i] {
			n++
		}
	}
	return n
}

// Serves returns the engine that part p was sent to; None if it is unknown because spans are missing.
func (r *RankSet) Serves(p *request.Part) int32 {
	if rank := r.Route(p); rank != request.None {
		return r.Engine[rank]
	}
	if any := r.AnyOf(p); any != request.None {
		return r.Engine[any]
	}
	return request.None
}

// AnyOf returns a rank that part p may have been sent to if only the server is known, and all ranks that lead there take each step
// together, or else None. It chooses another one for each request.
func (r *RankSet) AnyOf(p *request.Part) int {
	list := r.onServer(p)
	if len(list) == 0 || slices.ContainsFunc(list, func(rank int32) bool { return r.Engine[rank] != r.Engine[list[0]] }) {
		return request.None
	}
	return int(list[p.Request%len(list)])
}

// Route returns the leading rank that part p was sent to; None if it is unknown because spans are missing.
func (r *RankSet) Route(p *request.Part) int {
	if _, rank := r.Lead(p); rank != request.None && r.Leads[rank] {
		return rank
	}
	return request.None
}

// isBare reports whether a part has no threads because its server does not record them, as with vLLM. If other
// servers of its role do, the part has lost its threads.
func (r *RankSet) isBare(p *request.Part) bool { return r.bare[p.Role] && !r.hasThreads(p) }

// hasThreads reports whether a part has threads with spans of their own. The stages of vLLM are in one without.
func (r *RankSet) hasThreads(p *request.Part) bool {
	return slices.ContainsFunc(r.Set.ThreadsOf(p), func(t int) bool { return r.Set.Threads[t].Row != request.None })
}

// Lead returns the thread and the rank that stand for part p: the lowest of the scheduler ranks that did its work
// together. Both may be None.
func (r *RankSet) Lead(p *request.Part) (thread, rank int) {
	if r.isBare(p) && p.Proc != request.None {
		return r.Set.Lead(p), int(r.Of[p.Proc])
	}
	thread = r.Set.Lead(p)
	if thread == request.None {
		return thread, request.None
	}
	if rank = int(r.Of[r.Set.Threads[thread].Proc]); rank == request.None {
		if only := r.onServer(p); len(only) == 1 {
			rank = int(only[0])
		}
	}
	return thread, rank
}

// onServer returns the ranks that lead on the server of a part: if the thread spans of its ranks are missing, its other
// threads at least show which server it was.
func (r *RankSet) onServer(p *request.Part) []int32 {
	for _, t := range r.Set.ThreadsOf(p) {
		proc := r.Set.Threads[t].Proc
		if list := r.leading[serverAt{p.Role, r.Set.HostOf(proc), r.Set.Server(proc)}]; len(list) > 0 && r.Set.Procs[proc].Host != "" {
			return list
		}
	}
	return nil
}

// Named parses the name of a rank: "decode DP0 TP1 (node7)". The host is ignored, because it may have another name
// elsewhere. A name without a rank, such as that of a process, is kept as the label.
func Named(name string) Location {
	at := Location{Scope: OneRank, Role: request.Other, Rank: trace.NoRank}
	if is, err := naming.Parse(name); err == nil {
		at.Rank = is.Rank
		if role, ok := request.ParseRole(is.Role); ok {
			at.Role = role
		}
	} else {
		at.Label = name
	}
	return at
}

// At returns the location of a rank that no request mentions, with names from names.
func At(role request.Role, host string, rank trace.Rank, names *naming.Names) Location {
	return Location{Scope: OneRank, Role: role, Host: host, Rank: rank, names: names}
}

// Device returns the location of a GPU that is not known to belong to a rank, by its name.
func Device(name string) Location {
	return Location{Scope: OneRank, Role: request.Other, Rank: trace.NoRank, Label: name}
}
