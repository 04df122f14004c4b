package convert

import (
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// role is what people compare between ranks.
type role uint8

const (
	noRole role = iota
	stepRole
	gpuStepRole
	computeRole
	communicationRole
	copyRole
	roles
)

// roleNames are the groups of "Side by side", and what streams are used for.
var roleNames = [roles]string{"", "Steps", "Steps on the GPU", "Compute", "Communication", "Copy"}

var roleDescs = [roles]string{
	stepRole:          "Batches of each scheduler, as its CPU thread ran them.",
	gpuStepRole:       "The same batches, from their first to their last kernel.",
	computeRole:       "Kernels that compute, of all streams of a rank.",
	communicationRole: "Kernels that communicate. Arrows join a collective over its ranks and end at the last one to arrive.",
	copyRole:          "Copies and fills of memory.",
}

// classifier tells what device events are, by symbol, so that every name is
// looked at once.
type classifier struct {
	syms                   *trace.Symbols
	names                  []role // by symbol; noRole is not looked at yet
	kernel, memcpy, memset trace.Sym
}

func newClassifier(syms *trace.Symbols) *classifier {
	return &classifier{syms: syms, kernel: syms.Intern("kernel"), memcpy: syms.Intern("gpu_memcpy"), memset: syms.Intern("gpu_memset")}
}

// role returns what the device does in s; noRole for annotations and waits.
func (c *classifier) role(s *trace.Slice) role {
	switch s.Cat {
	case c.kernel:
	case c.memcpy, c.memset:
		return copyRole
	default:
		return noRole
	}
	if int(s.Name) >= len(c.names) {
		c.names = append(c.names, make([]role, max(int(s.Name)+1, c.syms.Len())-len(c.names))...)
	}
	if c.names[s.Name] == noRole {
		c.names[s.Name] = computeRole
		if profile.IsCommunication(c.syms.Name(s.Name)) {
			c.names[s.Name] = communicationRole
		}
	}
	return c.names[s.Name]
}

// streamRole returns what a stream spends most of its time with, "" if nothing
// is known.
func (m *merging) streamRole(r *rankTrack, row *row) string {
	var busy [roles]int64
	for c, l := range row.lines {
		if l == nil {
			continue
		}
		events := r.captures[c].file.Events
		for _, lane := range l.Lanes {
			for _, e := range lane {
				busy[m.classes.role(&events[e])] += events[e].Dur
			}
		}
	}
	busy[noRole] = 0
	best := noRole
	for k, ns := range busy {
		if ns > busy[best] {
			best = role(k)
		}
	}
	return [roles]string{computeRole: "compute", communicationRole: "communication", copyRole: "copy"}[best]
}

// addCompareGroups adds the group "Side by side" with a group for each role that
// any rank has.
func (m *merging) addCompareGroups() {
	var used [roles]bool
	for _, r := range m.tracks {
		for _, c := range r.captures {
			m.usedRoles(c, &used)
		}
	}
	top := m.Track(trace.Track{Kind: trace.KindGroup, Name: m.Intern(profile.SideBySide), Order: 3, Rank: trace.NoRank,
		Desc: m.Intern("The same row of every rank, one under another.")})
	for k := stepRole; k < roles; k++ {
		if used[k] {
			m.compare[k] = m.Track(trace.Track{Parent: top, Kind: trace.KindGroup, Name: m.Intern(roleNames[k]), Order: int32(k),
				Rank: trace.NoRank, Desc: m.Intern(roleDescs[k])})
		}
	}
}

// usedRoles notes which roles a capture has events of.
func (m *merging) usedRoles(c *capture, used *[roles]bool) {
	for l := range streamsOf(c) {
		for _, lane := range l.Lanes {
			for _, e := range lane {
				used[m.classes.role(&c.file.Events[e])] = true
			}
		}
	}
	for k := range stepsOf(c) {
		used[k] = true
	}
}

// streamsOf yields the lines of a capture that are streams of a device.
func streamsOf(c *capture) iter.Seq[*inputs.Line] {
	return func(yield func(*inputs.Line) bool) {
		for i := range c.file.Lines {
			l := &c.file.Lines[i]
			if l.Key.Part == c.part && l.Key.Kind == profile.RowStream && !yield(l) {
				return
			}
		}
	}
}

// stepsOf yields the role and the event of each step of a capture.
func stepsOf(c *capture) iter.Seq2[role, uint32] {
	return func(yield func(role, uint32) bool) {
		for _, s := range c.file.Steps {
			if s.Event == profile.NoEvent || c.file.Rows[s.Row].Part != c.part {
				continue
			}
			k := stepRole
			if s.OnGPU {
				k = gpuStepRole
			}
			if !yield(k, uint32(s.Event)) {
				return
			}
		}
	}
}

// comparedEvents returns, for each role, the events of a capture in order of time.
func (m *merging) comparedEvents(c *capture) (events [roles][]uint32) {
	f := c.file
	for l := range streamsOf(c) {
		for _, lane := range l.Lanes {
			for _, e := range lane {
				k := m.classes.role(&f.Events[e])
				events[k] = append(events[k], e)
			}
		}
	}
	events[noRole] = nil
	for k, e := range stepsOf(c) {
		events[k] = append(events[k], e)
	}
	for k := range events {
		slices.SortStableFunc(events[k], func(a, b uint32) int { return inputs.CompareSlices(&f.Events[a], &f.Events[b]) })
	}
	return events
}

// drawCompared draws the rows of rank number n in the group "Side by side".
func (m *merging) drawCompared(r *rankTrack, n int) {
	all := make([][roles][]uint32, len(r.captures))
	for c, capture := range r.captures {
		all[c] = m.comparedEvents(capture)
	}
	for k := stepRole; k < roles; k++ {
		if m.compare[k] == 0 {
			continue
		}
		lanes, most := make([][][]uint32, len(all)), 0
		for c := range all {
			lanes[c] = inputs.SplitLanes(r.captures[c].file.Events, all[c][k], r.captures[c].file.Tolerance)
			most = max(most, len(lanes[c]))
		}
		for lane := range most {
			track := m.Track(trace.Track{Parent: m.compare[k], Kind: trace.KindStream, Name: m.laneName(r.name, lane), Order: int32(n*inputs.MaxLanes + lane),
				PID: r.pid, Rank: r.rank, Host: m.Intern(r.host), Clock: m.clockIDs[r.clock], Desc: m.Intern(r.source())})
			for c := range all {
				if lane < len(lanes[c]) {
					m.drawAgain(r.captures[c], lanes[c][lane], track)
				}
			}
		}
	}
}

// drawAgain draws the given events of a capture on a track, and remembers what
// became of those that arrows may join.
func (m *merging) drawAgain(c *capture, events []uint32, track trace.TrackID) {
	for _, e := range events {
		id := m.drawEvent(c, &c.file.Events[e], track)
		if joined := m.drawn[c.file].joined; joined.has(int32(e)) {
			joined[int32(e)] = id
		}
	}
}
