package ranks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Jobs numbers the sets of ranks that communicate with each other: those whose files belong to the same
// capture run, or to none. If a rank occurs more than once in a set, the set holds several servers, or
// replicas of one. Then it is divided by accelerator model, role, and DP rank; or by host or folder, if
// each of these has the whole server.
func (m *Assignment) Jobs() []int {
	runs := map[string]int{}
	for _, r := range m.Tracks {
		runs[r.Run]++
	}
	keys := make([]string, len(m.Tracks))
	traced := map[string]bool{} // the runs that have traces
	for i, r := range m.Tracks {
		keys[i] = "world of " + strconv.Itoa(int(r.Captures[0].worldSize()))
		if runs[r.Run] > 1 {
			keys[i] = "run " + r.Run
		}
		if !r.Captures[0].IsOfMachine() {
			traced[keys[i]] = true
		}
	}
	// The names of exports do not identify a run: they join the only run, if there is just one.
	for i, r := range m.Tracks {
		for key := range traced {
			if len(traced) == 1 && r.Run == "" && r.Captures[0].IsOfMachine() {
				keys[i] = key
			}
		}
	}
	m.divideBySize(keys)
	communities := m.Communities()
	m.divide(keys, false, func(r *Track) string { return communities[r] })
	m.divide(keys, false, func(r *Track) string { return r.Captures[0].model() })
	m.divide(keys, false, func(r *Track) string { return fmt.Sprintf("%s DP%d", r.Role, r.Rank.DP) })
	m.divide(keys, true, func(r *Track) string { return r.Host })
	m.divide(keys, true, func(r *Track) string { return filepath.Dir(r.Captures[0].File.Name) })
	// Ranks that share a communicator are in one job, whatever their names.
	first := map[string]string{}
	for i, r := range m.Tracks {
		if c := communities[r]; c != "" {
			keys[i] = cmp.Or(first[c], keys[i])
			first[c] = keys[i]
		}
	}
	numbers := map[string]int{}
	jobs := make([]int, len(m.Tracks))
	for i, key := range keys {
		if _, ok := numbers[key]; !ok {
			numbers[key] = len(numbers)
		}
		jobs[i] = numbers[key]
	}
	return jobs
}

// divideBySize divides the sets of ranks, named by keys, whose files report several world sizes: these are several
// jobs, unless file names put them in one run.
func (m *Assignment) divideBySize(keys []string) {
	size := func(r *Track) int32 {
		if r.Run != "" {
			return 0
		}
		return r.Captures[0].worldSize()
	}
	sizes := map[string]map[int32]bool{}
	for i, r := range m.Tracks {
		if n := size(r); n > 0 {
			order.Memo(sizes, keys[i], func() map[int32]bool { return map[int32]bool{} })[n] = true
		}
	}
	for i, r := range m.Tracks {
		if n := size(r); n > 0 && len(sizes[keys[i]]) > 1 {
			keys[i] += fmt.Sprintf(" of %d", n)
		}
	}
}

// Communities names the sets of ranks that share communicators, as far as communicators have globally
// unique IDs; "" is unknown.
func (m *Assignment) Communities() map[*Track]string {
	of := map[*Track]string{}
	owner := map[trace.Sym]*Track{} // the first rank of each communicator
	rename := func(from, to string) {
		for r, name := range of {
			if name == from {
				of[r] = to
			}
		}
	}
	for _, r := range m.Tracks {
		for _, group := range r.communicators() {
			name := m.syms.Name(group)
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

// communicators returns the groups of a rank's collectives, by first appearance.
func (r *Track) communicators() (groups []trace.Sym) {
	for _, c := range r.Captures {
		kinds := c.File.Collectives.Kinds()
		for i := range kinds {
			x := &kinds[i]
			if x.Group != 0 && c.File.Rows[x.Row].Part == c.Part && !slices.Contains(groups, x.Group) {
				groups = append(groups, x.Group)
			}
		}
	}
	return groups
}

// divide divides the sets of ranks, named by keys, in which a rank occurs more than once, by a property of
// ranks. With whole, it divides a set only if each value of the property has all of the set's ranks: the
// ranks of one server may be spread over hosts, and then a second copy of one rank is not a second server.
func (m *Assignment) divide(keys []string, whole bool, by func(*Track) string) {
	type part struct{ set, value string }
	rankKeys, repeated := map[string]map[trace.Rank]bool{}, map[string]bool{}
	parts := map[part]map[trace.Rank]bool{}
	for i, r := range m.Tracks {
		set, in := keys[i], part{keys[i], by(r)}
		if rankKeys[set] == nil {
			rankKeys[set] = map[trace.Rank]bool{}
		}
		if parts[in] == nil {
			parts[in] = map[trace.Rank]bool{}
		}
		if key := r.RankKey(); key != trace.NoRank {
			repeated[set] = repeated[set] || rankKeys[set][key]
			rankKeys[set][key], parts[in][key] = true, true
		}
	}
	for in, own := range parts {
		if whole && (in.value == "" || len(own) < len(rankKeys[in.set])) {
			repeated[in.set] = false
		}
	}
	for i, r := range m.Tracks {
		if repeated[keys[i]] {
			keys[i] += " " + by(r)
		}
	}
}

// Conflicts reports, for each rank, whether it repeats another rank of its job: both were captured at the
// same time or on different hosts, so one of them must be from another server. Such ranks are not matched:
// a collective with a repeated rank is no evidence.
func (m *Assignment) Conflicts(jobs []int) []bool {
	type place struct {
		job int
		key trace.Rank
	}
	holders := map[place][]*Track{}
	conflicts := make([]bool, len(m.Tracks))
	for k, r := range m.Tracks {
		at := place{jobs[k], r.RankKey()}
		if at.key == trace.NoRank {
			continue
		}
		conflicts[k] = slices.ContainsFunc(holders[at], func(o *Track) bool {
			return r.overlaps(o) || r.Host != "" && o.Host != "" && r.Host != o.Host
		})
		if !conflicts[k] {
			holders[at] = append(holders[at], r)
		}
	}
	return conflicts
}

// isNone reports whether a shift is within the accuracy with which nsys records the start of a session.
func isNone(s *Shift) bool {
	const accuracy = 2000 // ns
	return max(s.Offset, -s.Offset) <= accuracy && s.DriftPPB == 0
}
