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

// nameRanks orders the ranks and gives them names that tell them apart, the same as those
// of the requests.
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

// orderTracks puts the ranks in the order of the timeline.
func (m *Assignment) orderTracks() {
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
	maps.Copy(known, recorded) // what profilers call a host goes before what a resource does
	return naming.New(places, known)
}

// placeOf returns the place of a rank: of one that is a process of the dump that place,
// with what its files tell besides.
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

// nameProcesses names the processes of which no rank is known.
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

// process tells what the first capture of a track tells about its process. What an export
// holds of no process is that of the machine.
func (r *Track) process() naming.Process {
	c := r.Captures[0]
	is := naming.Process{Host: r.Host, File: c.File.Name}
	switch name, pid, n := c.File.ProcessOf(c.Part); {
	case c.IsOfMachine() && c.File.Meta.PID == 0:
		is.Name = "machine"
	case c.Part != "": // a timeline of ours has called it so
		is.Name = c.Part
	case n > 1:
		is.Name = fmt.Sprintf("%d processes", n)
	default:
		is.Name, is.PID = name, pid
	}
	return is
}

// NameOthers names the processes of each of the sources whose rows are walked that are not among the tracks.
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

// rankList names the ranks that there are: a few of many, and their hosts if they have
// several.
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

// Placements returns where each rank ran: of one that is a process of the dump, requests tell its host.
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

// GPUs returns what the accelerators of each rank are called: "NVIDIA H100 80GB HBM3"; "" where
// no file tells, or some are called otherwise.
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
