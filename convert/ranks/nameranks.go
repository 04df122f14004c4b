package ranks

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// nameRanks orders the ranks and gives them names that tell them apart, the same as those
// of the requests.
func (m *Ranks) nameRanks() {
	for _, r := range m.Tracks {
		r.Role = r.kinds.role()
		if r.Proc != request.None {
			r.Role = m.Requests.Procs[r.Proc].Role.String()
		}
	}
	is := func(role request.Role) bool {
		return slices.ContainsFunc(m.Tracks, func(r *Track) bool { return r.Role == role.String() })
	}
	m.bothRoles = is(request.Prefill) && is(request.Decode)
	m.orderTracks()
	m.Names = m.nameAll()
	if m.Requests != nil {
		m.Requests.Names = m.Names
	}
	taken := map[string]int{}
	for _, r := range m.Tracks {
		r.Name = m.nameOf(r)
		if taken[r.Name]++; taken[r.Name] > 1 {
			r.Name += fmt.Sprintf(" #%d", taken[r.Name])
		}
	}
}

// orderTracks puts the ranks in the order of the timeline.
func (m *Ranks) orderTracks() {
	place := map[string]int{}
	if m.bothRoles {
		place = map[string]int{request.Prefill.String(): 1, request.Decode.String(): 2}
	}
	slices.SortStableFunc(m.Tracks, func(a, b *Track) int {
		// The first rank is what others are put on the clock of: of several, the one
		// of which most is known.
		return cmp.Or(order.Bool(a.Rank == trace.NoRank, b.Rank == trace.NoRank), cmp.Compare(place[a.Role], place[b.Role]), a.Rank.Compare(b.Rank),
			cmp.Compare(b.Captures[0].File.Meta.Origin, a.Captures[0].File.Meta.Origin), order.Bool(a.Host == "", b.Host == ""),
			strings.Compare(a.Host, b.Host), strings.Compare(a.Captures[0].File.Name, b.Captures[0].File.Name))
	})
}

// nameAll names the ranks and hosts of all inputs. The host of a rank that is a process of
// the dump is that of the process.
func (m *Ranks) nameAll() *naming.Names {
	var places []naming.Place
	known, recorded := naming.HostNames{}, naming.HostNames{}
	if m.Requests != nil {
		places = m.Requests.Places()
		maps.Copy(known, m.Requests.HostNames)
	}
	for _, r := range m.Tracks {
		if r.Proc != request.None && r.Host != "" {
			recorded.Learn(m.Requests.Procs[r.Proc].Host, r.Host)
		}
		places = append(places, m.placeOf(r))
	}
	maps.Copy(known, recorded) // what profilers call a host goes before what a resource does
	return naming.New(places, known)
}

// placeOf returns the place of a rank: of one that is a process of the dump that place,
// with what its files tell besides.
func (m *Ranks) placeOf(r *Track) naming.Place {
	if r.Proc != request.None {
		p := m.Requests.Place(r.Proc)
		p.Rank = p.Rank.Fill(r.Rank)
		return p
	}
	p := naming.Place{Host: r.Host, Rank: r.Rank}
	if r.Rank != trace.NoRank && m.bothRoles {
		p.Role = r.Role
	}
	return p
}

// nameOf names a rank, or a process that is none.
func (m *Ranks) nameOf(r *Track) string {
	place := m.placeOf(r)
	if r.Rank != trace.NoRank {
		return m.Names.Rank(place)
	}
	f := r.Captures[0].File
	name := Stem(f.Name)
	if f.Source.Format.Machine { // has more than one process
		if f.Meta.PID == 0 && r.Host != "" {
			name = r.Host
		}
		name += " " + processName(f.Profile)
	}
	return name
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
