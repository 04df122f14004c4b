package convert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// call is a collective of a capture.
type call struct {
	capture *capture
	index   int32 // into File.Collectives
}

// matchCollectives finds the same collective on several ranks, by its kernels.
func (m *Clocks) matchCollectives() {
	n := namer{syms: m.Dump.Syms, comms: map[profile.Collective]align.CommID{}, calls: map[profile.Collective]align.CallID{}}
	jobs := m.jobs()
	rivals := m.rivals(jobs)
	m.alignRanks, m.alignOf, m.calls = nil, nil, nil
	for k, r := range m.tracks {
		if rivals[k] {
			continue
		}
		rank := align.Rank{Clock: r.clock, Job: jobs[k], Global: r.global()}
		var calls []call
		for _, c := range r.captures {
			for i := range c.file.Collectives {
				if x := &c.file.Collectives[i]; x.OnGPU && c.file.Rows[x.Row].Part == c.part {
					calls = append(calls, call{c, int32(i)})
				}
			}
		}
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.collective().Time, b.collective().Time) })
		for _, c := range calls {
			rank.Calls = append(rank.Calls, n.collective(r, c))
		}
		if len(calls) > 0 {
			m.alignRanks, m.alignOf, m.calls = append(m.alignRanks, rank), append(m.alignOf, r), append(m.calls, calls)
		}
	}
	m.alignNames = &n.names
	m.matches, _ = align.MatchCollectives(m.alignRanks, m.alignNames, align.MatchOptions{})
}

func (c call) collective() *profile.Collective { return &c.capture.file.Collectives[c.index] }

// namer numbers communicators and calls. Strings are looked at once for each
// combination of symbols.
type namer struct {
	syms  *trace.Symbols
	names align.Names
	comms map[profile.Collective]align.CommID
	calls map[profile.Collective]align.CallID
}

// collective returns c in the form in which collectives are compared.
func (n *namer) collective(r *rankTrack, c call) align.Collective {
	x := c.collective()
	out := align.Collective{Start: int64(x.Time), End: int64(x.Time) + x.Dur, CommsID: x.CommsID, Seq: x.Seq, Step: -1}
	if strings.HasPrefix(n.syms.Name(x.Group), profile.CommunicatorPrefix) {
		out.Seq = -1 // counted by us: where one range was lost, all numbers behind it are wrong, but not the order
	}
	comm := profile.Collective{Group: x.Group, Ranks: x.Ranks, GroupSize: x.GroupSize}
	id, ok := n.comms[comm]
	if !ok && x.Group != 0 {
		id = n.names.Comm(align.Comm{Group: n.syms.Name(x.Group), Ranks: n.syms.Name(x.Ranks), Size: max(0, x.GroupSize)})
		n.comms[comm] = id
	}
	if x.Group == 0 {
		// Kernels without metadata run in the group of their TP ranks as a rule.
		id = n.names.Comm(align.Comm{Group: fmt.Sprintf("TP ranks of PP%d DP%d", r.rank.PP, r.rank.DP)})
	}
	out.Comm = id
	what := profile.Collective{Op: x.Op, Dtype: x.Dtype, In: x.In, Out: x.Out, Name: x.Name}
	out.Call, ok = n.calls[what]
	if !ok {
		out.Call = n.names.Call(align.Call{Op: n.syms.Name(x.Op), Dtype: n.syms.Name(x.Dtype), In: max(0, x.In), Out: max(0, x.Out),
			Family: family(n.syms.Name(x.Name))})
		n.calls[what] = out.Call
	}
	return out
}

// family returns the name of a kernel without its arguments, whose types differ
// between builds and ranks.
func family(kernel string) string {
	name, _, _ := strings.Cut(kernel, "(")
	name, _, _ = strings.Cut(name, "<")
	return strings.TrimPrefix(name, "void ")
}

// jobs numbers the sets of ranks that communicate with each other: those whose
// files belong to one capture, or of which no such thing is known. Where ranks
// have equal numbers, they are of several servers, or of replicas of one: then
// what they do and their DP rank tell them apart; else their hosts or folders, if
// each has the whole server.
func (m *Ranks) jobs() []int {
	runs := map[string]int{}
	for _, r := range m.tracks {
		runs[r.run]++
	}
	keys := make([]string, len(m.tracks))
	traced := map[string]bool{} // the runs of traces
	for i, r := range m.tracks {
		keys[i] = "world of " + strconv.Itoa(int(r.captures[0].file.Meta.WorldSize))
		if runs[r.run] > 1 {
			keys[i] = "run " + r.run
		}
		if !r.captures[0].isOfMachine() {
			traced[keys[i]] = true
		}
	}
	// Names of exports tell no run: they join the only one that there is.
	for i, r := range m.tracks {
		for key := range traced {
			if len(traced) == 1 && r.run == "" && r.captures[0].isOfMachine() {
				keys[i] = key
			}
		}
	}
	communities := m.communities()
	m.divide(keys, false, func(r *rankTrack) string { return communities[r] })
	m.divide(keys, false, func(r *rankTrack) string { return fmt.Sprintf("%s DP%d", r.role, r.rank.DP) })
	m.divide(keys, true, func(r *rankTrack) string { return r.host })
	m.divide(keys, true, func(r *rankTrack) string { return filepath.Dir(r.captures[0].file.Name) })
	// Ranks of one communicator are of one job, whatever they are called.
	first := map[string]string{}
	for i, r := range m.tracks {
		if c := communities[r]; c != "" {
			keys[i] = cmp.Or(first[c], keys[i])
			first[c] = keys[i]
		}
	}
	numbers := map[string]int{}
	jobs := make([]int, len(m.tracks))
	for i, key := range keys {
		if _, ok := numbers[key]; !ok {
			numbers[key] = len(numbers)
		}
		jobs[i] = numbers[key]
	}
	return jobs
}

// communities names the sets of ranks that share communicators, as far as these are
// known by ids that no other server has; "" is unknown.
func (m *Ranks) communities() map[*rankTrack]string {
	of := map[*rankTrack]string{}
	owner := map[trace.Sym]*rankTrack{} // the first rank of each communicator
	rename := func(from, to string) {
		for r, name := range of {
			if name == from {
				of[r] = to
			}
		}
	}
	for _, r := range m.tracks {
		for _, group := range r.communicators() {
			name := m.Dump.Syms.Name(group)
			if !strings.HasPrefix(name, profile.CommunicatorPrefix) {
				continue
			}
			o := owner[group]
			switch {
			case o == nil:
				owner[group] = r
				of[r] = cmp.Or(of[r], name)
			case of[r] == "":
				of[r] = of[o]
			case of[r] != of[o]:
				rename(of[r], of[o])
			}
		}
	}
	return of
}

// communicators returns the groups of the collectives of a rank, by first appearance.
func (r *rankTrack) communicators() (groups []trace.Sym) {
	for _, c := range r.captures {
		for i := range c.file.Collectives {
			x := &c.file.Collectives[i]
			if x.Group != 0 && c.file.Rows[x.Row].Part == c.part && !slices.Contains(groups, x.Group) {
				groups = append(groups, x.Group)
			}
		}
	}
	return groups
}

// divide divides the sets of ranks, named by keys, in which a rank is there
// several times, by a property of ranks. With whole, only those are divided whose
// ranks are all there for each value of the property: the ranks of one server may
// be spread over hosts, and then a second copy of one rank is no second server.
func (m *Ranks) divide(keys []string, whole bool, by func(*rankTrack) string) {
	type part struct{ set, value string }
	seats, repeated := map[string]map[trace.Rank]bool{}, map[string]bool{}
	parts := map[part]map[trace.Rank]bool{}
	for i, r := range m.tracks {
		set, in := keys[i], part{keys[i], by(r)}
		if seats[set] == nil {
			seats[set] = map[trace.Rank]bool{}
		}
		if parts[in] == nil {
			parts[in] = map[trace.Rank]bool{}
		}
		if seat := r.seat(); seat != trace.NoRank {
			repeated[set] = repeated[set] || seats[set][seat]
			seats[set][seat], parts[in][seat] = true, true
		}
	}
	for in, own := range parts {
		if whole && (in.value == "" || len(own) < len(seats[in.set])) {
			repeated[in.set] = false
		}
	}
	for i, r := range m.tracks {
		if repeated[keys[i]] {
			keys[i] += " " + by(r)
		}
	}
}

// rivals tells which ranks have the place of another one in their job: captures
// of one rank at one time, or on different hosts, of which one cannot be of this
// server. They are not matched: a collective that has a rank twice says nothing about
// any.
func (m *Ranks) rivals(jobs []int) []bool {
	type place struct {
		job  int
		seat trace.Rank
	}
	holders := map[place][]*rankTrack{}
	rivals := make([]bool, len(m.tracks))
	for k, r := range m.tracks {
		at := place{jobs[k], r.seat()}
		if at.seat == trace.NoRank {
			continue
		}
		rivals[k] = slices.ContainsFunc(holders[at], func(o *rankTrack) bool {
			return r.overlaps(o) || r.host != "" && o.host != "" && r.host != o.host
		})
		if !rivals[k] {
			holders[at] = append(holders[at], r)
		}
	}
	return rivals
}
