package ranks

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
	for _, r := range m.Tracks {
		r.Role = r.kinds.role()
		if r.Proc != request.None {
			r.Role = m.Requests.Procs[r.Proc].Role.String()
		}
		hosts[r.Host], roles[r.Role] = true, true
	}
	// Where all ranks do the same, that is no part of their names.
	several := roles[request.Prefill.String()] && roles[request.Decode.String()]
	taken := map[string]int{}
	place := map[string]int{request.Prefill.String(): 1, request.Decode.String(): 2}
	slices.SortStableFunc(m.Tracks, func(a, b *Track) int {
		x, y := 0, 0
		if several {
			x, y = place[a.Role], place[b.Role]
		}
		// The first rank is what others are put on the clock of: of several, the one
		// of which most is known.
		return cmp.Or(order.Bool(a.Rank == trace.NoRank, b.Rank == trace.NoRank), cmp.Compare(x, y), a.Rank.Compare(b.Rank),
			cmp.Compare(b.Captures[0].File.Meta.Origin, a.Captures[0].File.Meta.Origin), order.Bool(a.Host == "", b.Host == ""),
			strings.Compare(a.Host, b.Host), strings.Compare(a.Captures[0].File.Name, b.Captures[0].File.Name))
	})
	for _, r := range m.Tracks {
		r.Name = r.Rank.String()
		if r.Name == "" {
			f := r.Captures[0].File
			r.Name = Stem(f.Name)
			if f.Source.Format.Machine { // has more than one process
				if f.Meta.PID == 0 && r.Host != "" {
					r.Name = r.Host
				}
				r.Name += " " + processName(f.Profile)
			}
		}
		if several && r.Role != "" {
			r.Name = r.Role + " " + r.Name
		}
		if len(hosts) > 1 && r.Host != "" && !strings.HasPrefix(r.Name, r.Host) {
			r.Name += " (" + r.Host + ")"
		}
		if taken[r.Name]++; taken[r.Name] > 1 {
			r.Name += fmt.Sprintf(" #%d", taken[r.Name])
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

// Stem returns the name of a file without folders and what all traces end in.
func Stem(path string) string {
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
	for _, r := range m.Tracks[:min(most, len(m.Tracks))] {
		name := r.Name
		if r.Host != "" && !strings.Contains(name, "("+r.Host+")") {
			name += " (" + r.Host + ")"
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(m.Tracks) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
