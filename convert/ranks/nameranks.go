package ranks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// nameRanks orders the ranks and gives them unique names, which match those of the requests.
func (m *Assignment) nameRanks(requests *request.Set, set *series.Set) {
	for _, r := range m.Tracks {
		r.Role = r.kinds.role()
		if r.Proc != request.None {
			r.Role = requests.Procs[r.Proc].Role.String()
		}
	}
	is := func(role request.Role) bool {
		return slices.ContainsFunc(m.Tracks, func(r *Track) bool { return r.Role == role.String() })
	}
	m.bothRoles = is(request.Prefill) && is(request.Decode)
	m.orderTracks()
	m.Names = m.nameAll(requests, set)
	if requests != nil {
		requests.Names = m.Names
	}
	processes := m.nameProcesses(requests)
	taken := map[string]int{}
	for _, r := range m.Tracks {
		if r.Name = processes[r]; r.Name == "" {
			r.Name = m.Names.Rank(m.placeOf(r, requests))
		}
		if taken[r.Name]++; taken[r.Name] > 1 {
			r.Name += fmt.Sprintf(" #%d", taken[r.Name])
		}
	}
}

// orderTracks sorts the ranks in timeline order.
func (m *Assignment) orderTracks() {
	place := map[string]int{}
	if m.bothRoles {
		place = map[string]int{request.Prefill.String(): 1, request.Decode.String(): 2}
	}
	slices.SortStableFunc(m.Tracks, func(a, b *Track) int {
		// The first rank's clock may become the reference: among equal ranks, prefer the one with the
		// best-known clock and host.
		return cmp.Or(order.Bool(a.Rank == trace.NoRank, b.Rank == trace.NoRank), cmp.Compare(place[a.Role], place[b.Role]), a.Rank.Compare(b.Rank),
			cmp.Compare(b.Captures[0].File.Meta.Origin, a.Captures[0].File.Meta.Origin), order.Bool(a.Host == "", b.Host == ""),
			strings.Compare(a.Host, b.Host), strings.Compare(a.Captures[0].File.Name, b.Captures[0].File.Name))
	})
}

// nameAll names the ranks and hosts of all inputs. A rank that is a process of the dump has the host of
// that process.
func (m *Assignment) nameAll(requests *request.Set, set *series.Set) *naming.Names {
	var places []naming.Place
	known, recorded := naming.HostNames{}, naming.HostNames{}
	if requests != nil {
		places = requests.Places()
		maps.Copy(known, requests.HostNames)
		maps.Copy(known, m.nameServers(requests, set))
	}
	for _, r := range m.Tracks {
		if r.Proc != request.None && r.Host != "" {
			recorded.Learn(requests.Procs[r.Proc].Host, r.Host)
		}
		places = append(places, m.placeOf(r, requests))
	}
	maps.Copy(known, recorded) // a host name from profilers takes precedence over one from resource attributes
	return naming.New(places, known)
}

// placeOf returns the place of a rank. If it is a process of the dump, it is that process's place,
// completed with what the rank's files say.
func (m *Assignment) placeOf(r *Track, requests *request.Set) naming.Place {
	if r.Proc != request.None {
		p := requests.Place(r.Proc)
		p.Rank = p.Rank.Fill(r.Rank)
		return p
	}
	p := naming.Place{Host: r.Host, Rank: r.Rank}
	if r.Rank != trace.NoRank && m.bothRoles {
		p.Role = r.Role
	}
	return p
}

// nameProcesses names the processes without a known rank.
func (m *Assignment) nameProcesses(requests *request.Set) map[*Track]string {
	var tracks []*Track
	var processes []naming.Process
	for _, r := range m.Tracks {
		if m.placeOf(r, requests).Rank == trace.NoRank {
			tracks, processes = append(tracks, r), append(processes, r.process())
		}
	}
	names := map[*Track]string{}
	for i, name := range m.Names.Processes(processes) {
		names[tracks[i]] = name
	}
	return names
}

// process describes the process of a track's first capture. What an export recorded outside of any process
// belongs to the machine.
func (r *Track) process() naming.Process {
	c := r.Captures[0]
	is := naming.Process{Host: r.Host, File: c.File.Name}
	switch name, pid, n := c.File.ProcessOf(c.Part); {
	case c.IsOfMachine() && c.File.Meta.PID == 0:
		is.Name = "machine"
	case c.Part != "": // named so by a timeline that this program wrote
		is.Name = c.Part
	case n > 1:
		is.Name = fmt.Sprintf("%d processes", n)
	default:
		is.Name, is.PID = name, pid
	}
	return is
}

// NameOthers returns a name for all processes that are not among the tracks, for each source whose rows are walked.
func (m *Assignment) NameOthers(sources []*inputs.Source) map[*inputs.Source]string {
	hosts := map[*inputs.Source]string{}
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			hosts[c.File.Source] = r.Host
		}
	}
	var exports []*inputs.Source
	var others []naming.Process
	for _, x := range sources {
		if x.Content.Rows != nil {
			exports = append(exports, x)
			others = append(others, naming.Process{Name: "other processes", Host: hosts[x], File: x.Input.Name})
		}
	}
	names := map[*inputs.Source]string{}
	for i, name := range m.Names.Processes(others) {
		names[exports[i]] = name
	}
	return names
}

// rankList names the ranks, abbreviated if there are many, with their hosts.
func (m *Assignment) rankList() string {
	var names []string
	for _, r := range m.Tracks {
		name := r.Name
		if r.Host != "" && !strings.Contains(name, "("+r.Host+")") {
			name += " (" + r.Host + ")"
		}
		names = append(names, name)
	}
	return some(names, 8)
}

// Placements returns where each rank ran. The host of a rank that is a process of the dump comes from the requests.
func (m *Assignment) Placements(requests *request.Set) []profile.Placement {
	homes := make([]profile.Placement, len(m.Tracks))
	for i, r := range m.Tracks {
		h := &homes[i]
		h.GPU = -1
		if host := m.placeOf(r, requests).Host; host != "" {
			h.Host = m.Names.Host(host)
		}
		for _, c := range r.Captures {
			meta := &c.File.Meta
			for _, v := range meta.Versions() {
				h.Versions = order.With(h.Versions, v)
			}
			h.Devices = max(h.Devices, len(meta.Devices))
			if meta.GPU < 0 || h.GPU >= 0 {
				continue
			}
			h.GPU = meta.GPU
			if k := slices.IndexFunc(meta.Devices, func(d profile.Device) bool { return d.ID == int64(h.GPU) }); k >= 0 {
				h.UUID = meta.Devices[k].UUID
			}
		}
	}
	return homes
}

// GPUs returns the accelerator model of each rank, such as "NVIDIA H100 80GB HBM3"; "" if it is unknown or
// mixed.
func (m *Assignment) GPUs() []string {
	names := make([]string, len(m.Tracks))
	for i, r := range m.Tracks {
		known, several := "", false
		for _, c := range r.Captures {
			for _, d := range c.File.Meta.Devices {
				several = several || known != "" && d.Name != known
				known = d.Name
			}
		}
		if !several {
			names[i] = known
		}
	}
	return names
}
