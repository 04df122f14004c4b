package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/align/matching"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// call is a collective of a capture.
type call struct {
	Capture *ranks.Capture
	index   int32 // into File.Collectives
}

// matchCollectives finds the same collective on several ranks, by its kernels.
func (m *Clocks) matchCollectives() {
	n := namer{syms: m.Dump.Syms, comms: map[profile.Collective]matching.CommID{}, calls: map[profile.Collective]matching.CallID{}}
	jobs := m.Jobs()
	n.replicated = m.replicated(jobs)
	rivals := m.Rivals(jobs)
	m.alignRanks, m.AlignOf, m.Calls = nil, nil, nil
	for k, r := range m.Tracks {
		if rivals[k] {
			continue
		}
		rank := matching.Rank{Clock: r.Clock, Job: jobs[k], Global: r.Global()}
		var calls []call
		for _, c := range r.Captures {
			for i := range c.File.Collectives {
				if x := &c.File.Collectives[i]; x.OnGPU && c.File.Rows[x.Row].Part == c.Part {
					calls = append(calls, call{c, int32(i)})
				}
			}
		}
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.Collective().Time, b.Collective().Time) })
		rank.Calls = memory.Make[matching.Collective](len(calls))[:0]
		for _, c := range calls {
			rank.Calls = append(rank.Calls, n.collective(r, jobs[k], c))
		}
		if len(calls) > 0 {
			m.alignRanks, m.AlignOf, m.Calls = append(m.alignRanks, rank), append(m.AlignOf, r), append(m.Calls, calls)
		}
	}
	m.alignNames = &n.names
	m.Matches, _ = matching.Find(m.alignRanks, m.alignNames, matching.Options{})
}

// replicated tells of which jobs the DP ranks are replicas, each with TP ranks of its own.
// With DP attention they are the TP ranks of one server, which meet.
func (m *Clocks) replicated(jobs []int) map[int]bool {
	type place struct {
		job    int
		pp, tp int16
	}
	dp, replicated := map[place]int16{}, map[int]bool{}
	for k, r := range m.Tracks {
		at := place{jobs[k], r.Rank.PP, r.Rank.TP}
		if other, ok := dp[at]; ok && other != r.Rank.DP {
			replicated[jobs[k]] = true
		}
		dp[at] = r.Rank.DP
	}
	return replicated
}

func (c call) Collective() *profile.Collective { return &c.Capture.File.Collectives[c.index] }

// namer numbers communicators and calls. Strings are looked at once for each
// combination of symbols.
type namer struct {
	syms       *trace.Symbols
	names      matching.Names
	comms      map[profile.Collective]matching.CommID
	calls      map[profile.Collective]matching.CallID
	replicated map[int]bool // by job
}

// collective returns c in the form in which collectives are compared.
func (n *namer) collective(r *ranks.Track, job int, c call) matching.Collective {
	x := c.Collective()
	out := matching.Collective{Start: int64(x.Time), End: int64(x.Time) + x.Dur, CommsID: x.CommsID, Seq: x.Seq, Step: -1}
	if strings.HasPrefix(n.syms.Name(x.Group), profile.CommunicatorPrefix) {
		out.Seq = -1 // counted by us: where one range was lost, all numbers behind it are wrong, but not the order
	}
	comm := profile.Collective{Group: x.Group, Ranks: x.Ranks, GroupSize: x.GroupSize}
	id, ok := n.comms[comm]
	if !ok && x.Group != 0 {
		id = n.names.Comm(matching.Comm{Group: n.syms.Name(x.Group), Ranks: n.syms.Name(x.Ranks), Size: max(0, x.GroupSize)})
		n.comms[comm] = id
	}
	if x.Group == 0 {
		id = n.names.Comm(matching.Comm{Group: n.usualGroup(r, job)})
	}
	out.Comm = id
	what := profile.Collective{Op: x.Op, Dtype: x.Dtype, In: x.In, Out: x.Out, Name: x.Name}
	out.Call, ok = n.calls[what]
	if !ok {
		out.Call = n.names.Call(matching.Call{Op: n.syms.Name(x.Op), Dtype: n.syms.Name(x.Dtype), In: max(0, x.In), Out: max(0, x.Out),
			Family: family(n.syms.Name(x.Name))})
		n.calls[what] = out.Call
	}
	return out
}

// usualGroup names the group that kernels without metadata run in as a rule: the TP ranks
// of a stage of a pipeline.
func (n *namer) usualGroup(r *ranks.Track, job int) string {
	if !n.replicated[job] {
		return fmt.Sprintf("TP ranks of PP%d", r.Rank.PP)
	}
	return fmt.Sprintf("TP ranks of PP%d DP%d", r.Rank.PP, r.Rank.DP)
}

// family returns the name of a kernel without its arguments, whose types differ
// between builds and ranks.
func family(kernel string) string {
	name, _, _ := strings.Cut(profile.Demangle(kernel), "(")
	name, _, _ = strings.Cut(name, "<")
	return strings.TrimPrefix(name, "void ")
}
