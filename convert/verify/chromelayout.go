package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A chromeLayout maps the tracks of a model to processes and threads. Chrome JSON has no nested tracks: a
// track's process is the nearest process track above it, or else the outermost request, or else its parent
// group. Processes and threads are numbered from 1 in viewer order, threads across all processes, and both
// are sorted by their numbers.
type chromeLayout struct {
	processes []chromeName               // indexed by pid - 1
	threads   []chromeName               // indexed by tid - 1
	lanes     map[[2]int64]trace.TrackID // by pid and tid
	counters  map[chromeCounter]trace.TrackID
}

// A chromeName is what metadata events say about a process or a thread, and which of these events were
// found.
type chromeName struct {
	pid, tid      int64
	name          string
	told          []chromeArg // its arguments, the name first
	named, sorted bool
}

// A chromeArg is an argument of an event that names a process or a thread.
type chromeArg struct {
	key, value string
	number     bool
}

func newChromeName(pid, tid int64, name string, rest []chromeArg) chromeName {
	name = valid(name)
	return chromeName{pid: pid, tid: tid, name: name, told: append([]chromeArg{{key: "name", value: name}}, rest...)}
}

// A chromeCounter identifies a counter: counters with the same name in one process have different ids.
type chromeCounter struct {
	pid  int64
	name string
	id   int
}

func newChromeLayout(m *model) *chromeLayout {
	l := &chromeLayout{lanes: map[[2]int64]trace.TrackID{}, counters: map[chromeCounter]trace.TrackID{}}
	pids := map[trace.TrackID]int64{}
	children := childrenOf(m.t.Tracks)
	var visit func(id trace.TrackID)
	visit = func(id trace.TrackID) {
		if c := &m.tracks[id]; id != 0 && c.slices.end|c.instants.end|c.samples.end != 0 {
			process := m.processOf(id)
			if pids[process] == 0 {
				pids[process] = int64(len(l.processes) + 1)
				l.processes = append(l.processes, newChromeName(pids[process], 0, m.processName(process), m.rankArgs(process)))
			}
			l.add(m, id, process, pids[process])
		}
		for _, child := range children[id] {
			visit(child)
		}
	}
	visit(0)
	return l
}

// add assigns a thread or a counter to a track.
func (l *chromeLayout) add(m *model, id, process trace.TrackID, pid int64) {
	name := m.nameBelow(process, id)
	if m.t.Tracks[id].Kind != trace.KindCounter {
		tid := int64(len(l.threads) + 1)
		l.threads = append(l.threads, newChromeName(pid, tid, name, m.rowArgs(process, id)))
		l.lanes[[2]int64{pid, tid}] = id
		return
	}
	c := chromeCounter{pid: pid, name: valid(name)}
	for l.counters[c] != 0 {
		c.id++
	}
	l.counters[c] = id
}

// rankOf returns the rank's track that a process belongs to, which is a child of the group of ranks; 0 if
// there is none.
func (m *model) rankOf(process trace.TrackID) trace.TrackID {
	for id := process; id != 0; id = m.t.Tracks[id].Parent {
		if group := m.t.Tracks[id].Parent; group != 0 && m.t.Tracks[group].Parent == 0 && m.names[m.t.Tracks[group].Name] == profile.ByRank {
			return id
		}
	}
	return 0
}

// rankArgs returns what the name event of a process says about its rank.
func (m *model) rankArgs(process trace.TrackID) (args []chromeArg) {
	rank := m.rankOf(process)
	if rank == 0 {
		return nil
	}
	t := &m.t.Tracks[rank]
	args = append(args, chromeArg{key: "part", value: valid(m.names[t.Name])})
	if t.Host != 0 {
		args = append(args, chromeArg{key: "host", value: valid(m.names[t.Host])})
	}
	if t.Rank != trace.NoRank {
		args = append(args, chromeArg{key: "rank", value: t.Rank.String()})
	}
	return args
}

// rowArgs returns what the name event of a row says about a thread or stream of a rank.
func (m *model) rowArgs(process, id trace.TrackID) []chromeArg {
	t := &m.t.Tracks[id]
	if m.rankOf(process) == 0 || t.TID == 0 && t.Kind != trace.KindStream {
		return nil
	}
	return []chromeArg{{"pid", strconv.FormatInt(t.PID, 10), true}, {"tid", strconv.FormatInt(t.TID, 10), true}}
}

// processOf returns the track that serves as the process of track id.
func (m *model) processOf(id trace.TrackID) trace.TrackID {
	tracks, request := m.t.Tracks, trace.TrackID(0)
	for up := id; up != 0; up = tracks[up].Parent {
		if tracks[up].Kind == trace.KindProcess {
			return up
		}
		if tracks[up].Kind == trace.KindRequest {
			request = up
		}
	}
	switch {
	case request != 0:
		return request
	case tracks[id].Parent != 0:
		return tracks[id].Parent
	}
	return id
}

// processName returns the path of a process, with its pid unless its own name contains it.
func (m *model) processName(id trace.TrackID) string {
	name, pid := m.nameBelow(0, id), strconv.FormatInt(m.t.Tracks[id].PID, 10)
	if pid == "0" || strings.Contains(m.names[m.t.Tracks[id].Name], pid) {
		return name
	}
	return name + " (pid " + pid + ")"
}

// nameBelow returns the path of track id below above, or its own name if they are the same; it is never
// empty.
func (m *model) nameBelow(above, id trace.TrackID) string {
	name := m.names[m.t.Tracks[id].Name]
	if id != above {
		name = m.path(above, id)
	}
	if name == "" {
		return fmt.Sprintf("track %d", id)
	}
	return name
}

// about checks an event that names or sorts a process or a thread.
func (l *chromeLayout) about(e *chromeEvent) error {
	what, sorts := strings.CutSuffix(e.name, "_sort_index")
	if !sorts {
		what = strings.TrimSuffix(e.name, "_name")
	}
	list, number := l.processes, e.pid
	if what == "thread" {
		list, number = l.threads, e.tid
	}
	if e.name == what || what != "thread" && what != "process" || number < 1 || number > int64(len(list)) || list[number-1].pid != e.pid || list[number-1].tid != e.tid {
		return fmt.Errorf("%s of process %d, thread %d is in the file, but not in the model", e.name, e.pid, e.tid)
	}
	entry := &list[number-1]
	want, found := entry.told, &entry.named
	if sorts {
		want, found = []chromeArg{{"sort_index", strconv.FormatInt(number, 10), true}}, &entry.sorted
	}
	args, err := members(e.args, nil)
	if err != nil {
		return err
	}
	if len(args) != len(want) || *found {
		return fmt.Errorf("%s of process %d, thread %d is there twice, or has other arguments", e.name, e.pid, e.tid)
	}
	*found = true
	for i, w := range want {
		have := string(args[i].value)
		if !w.number {
			if have, err = text(args[i].value); err != nil {
				return err
			}
		}
		if args[i].key != w.key || have != w.value {
			return fmt.Errorf("%s of process %d, thread %d has %s %s in the file; the model says %s %s", e.name, e.pid, e.tid, args[i].key, have, w.key, w.value)
		}
	}
	return nil
}

// named checks that all processes and threads were named and sorted.
func (l *chromeLayout) named() error {
	for _, list := range [...][]chromeName{l.processes, l.threads} {
		for _, x := range list {
			if !x.named || !x.sorted {
				return fmt.Errorf("the name or the place of %q is not in the file", x.name)
			}
		}
	}
	return nil
}
