package chrometrace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// layout maps tracks to processes and threads.
//
// The numbers of processes and threads are invented, from 1 in the order in which a viewer shows the tracks:
// real ones repeat between hosts and containers, and 0 is the idle task in Perfetto. Track names distinguish
// them.
type layout struct {
	places    []place // by TrackID
	processes []process
}

// place is where the events of a track go; pid 0 is nowhere.
type place struct {
	pid, tid int    // processes and counters have no tid
	name     string // of the thread, or of the counter, as a JSON string
	id       int    // distinguishes counters of one name in one process; 0 is the first
}

// members returns the place as members of a JSON object.
func (p place) members() string {
	s := fmt.Sprintf(`,"pid":%d`, p.pid)
	if p.tid != 0 {
		s += fmt.Sprintf(`,"tid":%d`, p.tid)
	}
	if p.id != 0 {
		s += fmt.Sprintf(`,"id":"%d"`, p.id)
	}
	return s
}

// process is a group of tracks; its pid is its index + 1.
type process struct {
	name    string // as a JSON string
	track   trace.TrackID
	threads []trace.TrackID // in order
}

// newLayout lays out the tracks that hold events.
func newLayout(t *trace.Trace, names []string) layout {
	used := make([]bool, len(t.Tracks))
	for i := range t.Slices[1:] {
		used[t.Slices[i+1].Track] = true
	}
	for i := range t.Instants {
		used[t.Instants[i].Track] = true
	}
	for i := range t.Samples {
		used[t.Samples[i].Track] = true
	}
	l := layout{places: make([]place, len(t.Tracks))}
	pids, tids := map[trace.TrackID]int{}, 0
	type counter struct {
		pid  int
		name string
	}
	counters := map[counter]int{}
	for _, id := range displayOrder(t.Tracks) {
		if !used[id] {
			continue
		}
		owner := ownerOf(t.Tracks, id)
		if pids[owner] == 0 {
			l.processes = append(l.processes, process{name: quote(processName(t.Tracks, owner, names)), track: owner})
			pids[owner] = len(l.processes)
		}
		p := &l.places[id]
		p.pid, p.name = pids[owner], quote(pathName(t.Tracks, owner, id, names))
		if t.Tracks[id].Kind == trace.KindCounter {
			same := counter{p.pid, p.name}
			p.id = counters[same]
			counters[same]++
			continue
		}
		// tids are unique over all processes: trace_processor searches the threads of equal tid one by one.
		tids++
		p.tid = tids
		owned := &l.processes[p.pid-1].threads
		*owned = append(*owned, id)
	}
	return l
}

// displayOrder returns all tracks, each before its children, siblings by Order,
// then id.
func displayOrder(tracks []trace.Track) []trace.TrackID {
	children := make([][]trace.TrackID, len(tracks))
	for id := 1; id < len(tracks); id++ {
		parent := tracks[id].Parent
		children[parent] = append(children[parent], trace.TrackID(id))
	}
	order := make([]trace.TrackID, 0, len(tracks))
	var visit func(trace.TrackID)
	visit = func(parent trace.TrackID) {
		slices.SortStableFunc(children[parent], func(a, b trace.TrackID) int {
			return cmp.Compare(tracks[a].Order, tracks[b].Order)
		})
		for _, id := range children[parent] {
			order = append(order, id)
			visit(id)
		}
	}
	visit(0)
	return order
}

// ownerOf returns the track that becomes the process of track id: the nearest
// process, else the outermost request, else the group around it, if any.
func ownerOf(tracks []trace.Track, id trace.TrackID) trace.TrackID {
	var request trace.TrackID
	for up := id; up != 0; up = tracks[up].Parent {
		switch tracks[up].Kind {
		case trace.KindProcess:
			return up
		case trace.KindRequest:
			request = up
		}
	}
	return cmp.Or(request, tracks[id].Parent, id)
}

// processName returns the path of a track, with the pid from its producer unless its name contains that.
func processName(tracks []trace.Track, id trace.TrackID, names []string) string {
	name := pathName(tracks, 0, id, names)
	if pid := strconv.FormatInt(tracks[id].PID, 10); tracks[id].PID != 0 && !strings.Contains(names[tracks[id].Name], pid) {
		name += " (pid " + pid + ")"
	}
	return name
}

// pathName joins the names from below the track owner down to id; the owner itself has its own name. It is
// never empty, as Perfetto rejects an empty thread name.
func pathName(tracks []trace.Track, owner, id trace.TrackID, names []string) string {
	path := names[tracks[id].Name]
	if id != owner {
		for up := tracks[id].Parent; up != owner && up != 0; up = tracks[up].Parent {
			path = names[tracks[up].Name] + " > " + path
		}
	}
	return cmp.Or(path, "track "+strconv.Itoa(int(id)))
}

// The numbers of processes and threads are invented, so that the metadata events that name them also carry the
// true numbers and the rank: chrometrace reads them again.

// rankOf returns the track of the rank that track id belongs to; nil if there is none.
func rankOf(tracks []trace.Track, id trace.TrackID, names []string) *trace.Track {
	for ; id != 0; id = tracks[id].Parent {
		group := &tracks[tracks[id].Parent]
		if tracks[id].Parent != 0 && group.Parent == 0 && names[group.Name] == profile.ByRank {
			return &tracks[id]
		}
	}
	return nil
}

// rankMembers returns the members about a rank, after the name of a process.
func rankMembers(rank *trace.Track, names []string) string {
	if rank == nil {
		return ""
	}
	members := `,"part":` + quote(names[rank.Name])
	if host := names[rank.Host]; host != "" {
		members += `,"host":` + quote(host)
	}
	if text := rank.Rank.String(); text != "" {
		members += `,"rank":` + quote(text)
	}
	return members
}

// rowMembers returns the members about a row of a rank, after its name. Rows about the profiler have no
// numbers.
func rowMembers(t *trace.Track) string {
	if t.Kind != trace.KindStream && t.TID == 0 {
		return ""
	}
	return fmt.Sprintf(`,"pid":%d,"tid":%d`, t.PID, t.TID)
}

// BaseAttribute is the attribute with the origin of a file's times, in ns since 1970.
const BaseAttribute = "base_time_ns"

// Attributes returns the attributes of the trace with the given head, and BaseAttribute; none if [Write] did
// not write it, or if the head ends among them.
func Attributes(head []byte) map[string]string {
	line, _, ok := bytes.Cut(head, []byte("\n"))
	var header struct{ Metadata map[string]string }
	if !ok || json.Unmarshal(append(bytes.Clone(line), "]}"...), &header) != nil {
		return nil
	}
	return header.Metadata
}
