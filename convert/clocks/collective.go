package clocks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// matchCollectives finds the same collective on several ranks, by its kernels and by the calls that wait on hosts.
func (m *aligner) matchCollectives() {
	jobs := m.of.Jobs()
	m.Meetings = m.meetings(jobs, func(kind *profile.Collective) bool { return kind.OnGPU })
	m.Matches, _ = matching.Find(m.ranks, m.names)
	m.hosts = m.meetings(jobs, func(kind *profile.Collective) bool {
		return !kind.OnGPU && kernelname.WaitsOnHost(m.in.Spans.Syms.Name(kind.Name))
	})
	m.hosts.Matches, _ = matching.FindOnHosts(m.hosts.ranks, m.hosts.names)
}

// meetings returns the collectives of the kinds selected by are, of all ranks, not matched yet.
func (m *aligner) meetings(jobs []int, are func(*profile.Collective) bool) (x Meetings) {
	n := namer{syms: m.in.Spans.Syms, known: map[profile.Collective]int32{}}
	replicated, conflicts, pairs := m.replicated(jobs), m.of.Conflicts(jobs), m.of.Pairs(jobs)
	for k, r := range m.of.Tracks {
		if conflicts[k] {
			continue
		}
		usual := usualGroup(r, replicated[jobs[k]])
		calls := newRankCalls(r, are, func(kind *profile.Collective) callName { return n.name(kind, usual) })
		if calls.Len() > 0 {
			rank := matching.Rank{Clock: r.Clock, Job: jobs[k], Global: r.Global(), Pair: pairs[jobs[k]], Calls: calls}
			x.ranks, x.AlignOf, x.Calls = append(x.ranks, rank), append(x.AlignOf, r), append(x.Calls, calls)
		}
	}
	x.names, x.whats = &n.names, n.whats
	return x
}

// replicated returns the jobs whose DP ranks are replicas, each with its own TP ranks. With DP attention,
// DP ranks are TP ranks of one server, which meet in collectives.
func (m *aligner) replicated(jobs []int) map[int]bool {
	type place struct {
		job    int
		pp, tp int16
	}
	dp, replicated := map[place]int16{}, map[int]bool{}
	for k, r := range m.of.Tracks {
		at := place{jobs[k], r.Rank.PP, r.Rank.TP}
		if other, ok := dp[at]; ok && other != r.Rank.DP {
			replicated[jobs[k]] = true
		}
		dp[at] = r.Rank.DP
	}
	return replicated
}

// namer numbers the names of communicators and calls.
type namer struct {
	syms  *trace.Symbols
	names matching.Names
	whats []profile.Collective         // the kinds that occurred, without their row
	known map[profile.Collective]int32 // indexes into whats
	named []callName                   // the name of each of whats; without comm if it has no group
}

// name returns the name of a kind of collectives. usual is the group of kinds that do not name one.
func (n *namer) name(kind *profile.Collective, usual string) callName {
	key := *kind
	key.Row, key.Tasks = 0, profile.CollectiveTasks{AtLeast: kind.Tasks.AtLeast}
	what, ok := n.known[key]
	if !ok {
		what = int32(len(n.whats))
		n.known[key] = what
		n.whats = append(n.whats, key)
		n.named = append(n.named, n.nameOf(&key, what))
	}
	name := n.named[what]
	if key.Group == 0 {
		name.comm = n.names.Comm(matching.Comm{Group: usual})
	}
	return name
}

func (n *namer) nameOf(x *profile.Collective, what int32) callName {
	name := callName{what: what, counted: strings.HasPrefix(n.syms.Name(x.Group), profile.CommunicatorPrefix)}
	if x.Group != 0 {
		name.comm = n.names.Comm(matching.Comm{Group: n.syms.Name(x.Group), Ranks: n.syms.Name(x.Ranks), Size: max(0, x.GroupSize)})
	}
	name.call = n.names.Call(matching.Call{Op: n.syms.Name(x.Op), Dtype: n.syms.Name(x.Dtype), In: max(0, x.In), Out: max(0, x.Out),
		Family: kernelname.Parse(n.syms.Name(x.Name)).Path()})
	return name
}

// usualGroup names the group that kernels without metadata usually run in: the TP ranks of a pipeline
// stage.
func usualGroup(r *ranks.Track, replicated bool) string {
	if !replicated {
		return fmt.Sprintf("TP ranks of PP%d", r.Rank.PP)
	}
	return fmt.Sprintf("TP ranks of PP%d DP%d", r.Rank.PP, r.Rank.DP)
}

// ReadCollectives reads the collectives of inputs whose rows are walked: their index has none. A process that a PyTorch
// trace also has keeps the trace's collectives, which have more detail.
func ReadCollectives(in *inputs.Loaded, of *ranks.Assignment) {
	if len(of.Tracks) == 1 && of.Tracks[0].Captures[0].File.Meta.Backend == "" {
		return // a single rank, and no sizes are recorded
	}
	type process struct {
		source *inputs.Source
		pid    int64
	}
	byProcess := map[process]*inputs.ProcessProfile{}
	for _, r := range of.Tracks {
		if slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return !c.IsBeside() }) {
			continue
		}
		for _, c := range r.Captures {
			byProcess[process{c.File.Source, c.File.Meta.PID}] = c.File
		}
	}
	parallel.Each(len(in.Sources), func(i int) {
		x := in.Sources[i]
		if x.Content.Rows == nil {
			return
		}
		profiles, err := in.Collectives(x)
		if err != nil {
			return
		}
		for _, p := range profiles {
			if f := byProcess[process{x, p.Meta.PID}]; f != nil {
				f.Rows, f.Collectives = p.Rows, p.Collectives
			}
		}
	})
}

// ClockOffsets returns how far the clock of each wanted rank is ahead of the reference, in ns, in the
// middle of its recording.
func (m *Alignment) ClockOffsets(of *ranks.Assignment) []int64 {
	ahead := make([]int64, len(of.Tracks))
	for i, r := range of.Tracks {
		middle := int64(0)
		for k, c := range r.Captures {
			if at := int64(c.First) + (int64(c.Last)-int64(c.First))/2; k == 0 || at < middle {
				middle = at
			}
		}
		ahead[i] = middle - m.HostClocks[r.Clock].Fit.ToReference(middle)
	}
	return ahead
}

// ForgetMatches releases the matches: [Alignment.CollectiveMatches] has all that reports need.
func (m *Alignment) ForgetMatches() {
	m.Meetings, m.hosts = Meetings{}, Meetings{}
}
