package convert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// nameRanks orders the ranks and gives them names that tell them apart.
func (m *Ranks) nameRanks() {
	hosts, roles := map[string]bool{}, map[string]bool{}
	for _, r := range m.tracks {
		r.role = r.kinds.role()
		if r.proc != request.None {
			r.role = m.Requests.Procs[r.proc].Role.String()
		}
		hosts[r.host], roles[r.role] = true, true
	}
	// Where all ranks do the same, that is no part of their names.
	several := roles[request.Prefill.String()] && roles[request.Decode.String()]
	taken := map[string]int{}
	place := map[string]int{request.Prefill.String(): 1, request.Decode.String(): 2}
	slices.SortStableFunc(m.tracks, func(a, b *rankTrack) int {
		x, y := 0, 0
		if several {
			x, y = place[a.role], place[b.role]
		}
		// The first rank is what others are put on the clock of: of several, the one
		// of which most is known.
		return cmp.Or(order.Bool(a.rank == trace.NoRank, b.rank == trace.NoRank), cmp.Compare(x, y), a.rank.Compare(b.rank),
			cmp.Compare(b.captures[0].file.Meta.Origin, a.captures[0].file.Meta.Origin), order.Bool(a.host == "", b.host == ""),
			strings.Compare(a.host, b.host), strings.Compare(a.captures[0].file.Name, b.captures[0].file.Name))
	})
	for _, r := range m.tracks {
		r.name = r.rank.String()
		if r.name == "" {
			f := r.captures[0].file
			r.name = stem(f.Name)
			if f.Source.Format.Machine { // has more than one process
				if f.Meta.PID == 0 && r.host != "" {
					r.name = r.host
				}
				r.name += " " + processName(f.Profile)
			}
		}
		if several && r.role != "" {
			r.name = r.role + " " + r.name
		}
		if len(hosts) > 1 && r.host != "" && !strings.HasPrefix(r.name, r.host) {
			r.name += " (" + r.host + ")"
		}
		if taken[r.name]++; taken[r.name] > 1 {
			r.name += fmt.Sprintf(" #%d", taken[r.name])
		}
	}
}

// processName is what a process of an export is called that is no rank.
func processName(p *profile.Profile) string {
	if p.Meta.PID == 0 {
		return "machine"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d", cmp.Or(p.Rows[0].Process, "pid"), p.Meta.PID))
}

// stem returns the name of a file without folders and what all traces end in.
func stem(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".trace", ".pt", ".sqlite"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// rankList names the ranks that there are: a few of many, and their hosts if they have
// several.
func (m *Ranks) rankList() string {
	const most = 8
	var names []string
	for _, r := range m.tracks[:min(most, len(m.tracks))] {
		name := r.name
		if r.host != "" && !strings.Contains(name, "("+r.host+")") {
			name += " (" + r.host + ")"
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(m.tracks) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
