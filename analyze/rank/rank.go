package rank

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
)

// Ranks compares the scheduler ranks of a deployment: how load is divided among them, which ranks keep others of a
// tensor parallel group waiting, how pipeline stages are used, and which ranks take longer for their work than their
// peers. docs/METRICS.md defines the numbers.
type Ranks struct {
	Length int64 // ns: from the first start of a request to the last end
	Loads  []Load
	Groups []*StepGroup
	Pipes  []*Pipeline
	Slow   []SlowServer

	starts         []*StepGroup // as Groups, but by when ranks begin steps
	peers          *place.Groups
	e2e            int64 // ns: mean of the finished requests; request.Unknown
	skipped        skippedSteps
	unrouted       [request.Other + 1]int // parts on an unknown rank, by role
	unequalBatches int                    // parts with different numbers of launches on the stages of a pipeline
	unlaunched     bool                   // there are pipelines, but no run_batch_cpu
	paced          int                    // the largest number of steps that two ranks of a group both have; -1 if no two were compared
	notes          []string
}

// Measure measures the ranks that work for requests.
func Measure(peers *place.Groups) *Ranks {
	of := peers.Ranks
	s := of.Set
	if len(s.Requests) == 0 {
		return &Ranks{paced: -1, peers: peers}
	}
	all := load.BulkOf(s)
	out := &Ranks{Length: int64(all.To - all.From), paced: -1, peers: peers}
	out.e2e = meanE2E(s)
	var steps [timed][][]paced
	var e2e e2eSum
	parallel.All(
		func() { out.measureSteps(of, all) },
		func() { steps = collectPaces(of, all) },
		func() { out.measureLoads(of, all) },
		func() { e2e = finishedE2E(of, all) },
		func() { out.measurePipelines(of, all) })
	out.comparePaces(of, steps, e2e)
	return out
}

func meanE2E(s *request.Set) int64 {
	var e2e []int64
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Finished && r.Metrics.E2E >= 0 {
			e2e = append(e2e, r.Metrics.E2E)
		}
	}
	if len(e2e) == 0 {
		return request.Unknown
	}
	return distribution.Summarize(e2e).Mean
}

// teams are the tensor parallel ranks that take steps together: those of one server, DP rank, pipeline stage, and
// host.
type teams struct {
	ranks   *place.RankSet
	team    []int32   // by place; request.None without a TP rank
	slot    []int32   // by place: index in its team
	ranksOf [][]int32 // places of every team, sorted by TP
	scratch []teamRank
}

// A teamRank is a rank of a team that works on some part.
type teamRank struct {
	team, slot int32
	thread     int
}

func newTeams(of *place.RankSet) *teams {
	t := &teams{ranks: of, team: make([]int32, len(of.Places)), slot: make([]int32, len(of.Places))}
	knownOf := of.KnownPlaces()
	var ids order.Groups[place.Location, []int32] // places of every team
	for i, p := range of.Places {
		t.team[i] = request.None
		if p.Rank.TP < 0 || knownOf[i] != int32(i) {
			continue
		}
		p.Rank.TP = -1
		id := ids.At(p)
		t.team[i], ids.List[id] = int32(id), append(ids.List[id], int32(i))
	}
	t.ranksOf = ids.List
	for _, list := range t.ranksOf {
		slices.SortFunc(list, func(x, y int32) int { return cmp.Compare(of.Places[x].Rank.TP, of.Places[y].Rank.TP) })
		for slot, place := range list {
			t.slot[place] = int32(slot)
		}
	}
	for i, known := range knownOf {
		t.team[i], t.slot[i] = t.team[known], t.slot[known]
	}
	return t
}

// members returns the ranks that work on a part, each once, sorted by team. They are valid until the next call.
func (t *teams) members(p *request.Part) []teamRank {
	t.scratch = t.scratch[:0]
	for _, th := range t.ranks.Set.ThreadsOf(p) {
		place := t.ranks.Of[t.ranks.Set.Threads[th].Proc]
		if place == request.None || t.team[place] == request.None {
			continue
		}
		t.scratch = append(t.scratch, teamRank{t.team[place], t.slot[place], th})
	}
	slices.SortStableFunc(t.scratch, func(x, y teamRank) int {
		return cmp.Or(cmp.Compare(x.team, y.team), cmp.Compare(x.slot, y.slot))
	})
	t.scratch = slices.CompactFunc(t.scratch, func(x, y teamRank) bool { return x.team == y.team && x.slot == y.slot })
	return t.scratch
}

// isApart reports whether two teams differ only in their hosts.
func (t *teams) isApart(x, y int32) bool {
	a, b := t.ranks.Places[t.ranksOf[x][0]], t.ranks.Places[t.ranksOf[y][0]]
	return a.Host != b.Host && a.Role == b.Role && a.Label == b.Label && a.Rank.PP == b.Rank.PP && a.Rank.DP == b.Rank.DP
}

// instance names a team: "decode DP1".
func (t *teams) instance(team int32) string {
	p := t.ranks.Places[t.ranksOf[team][0]]
	p.Rank.TP = -1
	return p.Group()
}
