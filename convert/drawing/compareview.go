package drawing

import (
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// role is a kind of activity that people compare between ranks.
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

// roleNames are the names of the groups in "Side by side".
var roleNames = [roles]string{"", "Steps", "Steps on the GPU", "Compute", "Communication", "Copy"}

// roleTracks begin the names of the tracks in these groups, since a pinned track is shown without its group; they also name
// what a stream is used for.
var roleTracks = [roles]string{"", "steps", "steps on the GPU", "compute", "communication", "copy"}

var roleDescs = [roles]string{
	stepRole:          "Batches of each scheduler, as its CPU thread ran them.",
	gpuStepRole:       "The same batches, from their first to their last kernel.",
	computeRole:       "Kernels that compute, of all streams of a rank.",
	communicationRole: "Kernels that communicate. Arrows join a collective over its ranks and end at the last one to arrive.",
	copyRole:          "Copies and fills of memory.",
}

// classifier classifies device events by symbol, so that every name is examined once.
type classifier struct {
	syms  *trace.Symbols
	names []role // by symbol; noRole means not examined yet
}

// role returns the role of a device event; noRole for annotations and waits.
func (c *classifier) role(s *profile.Slice) role {
	switch s.Place.Kind() {
	case profile.KernelSlice:
	case profile.CopySlice:
		return copyRole
	default:
		return noRole
	}
	if int(s.Name) >= len(c.names) {
		c.names = append(c.names, make([]role, max(int(s.Name)+1, c.syms.Len())-len(c.names))...)
	}
	if c.names[s.Name] == noRole {
		c.names[s.Name] = computeRole
		if kernelname.IsCommunication(c.syms.Name(s.Name)) {
			c.names[s.Name] = communicationRole
		}
	}
	return c.names[s.Name]
}

// streamRole returns the role that a stream spends most of its time in, "" if none is known.
func (m *merging) streamRole(r *ranks.Track, row *row) string {
	var busy [roles]int64
	for c, l := range row.lines {
		if l == nil {
			continue
		}
		events := r.Captures[c].File.Events
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
	return roleTracks[best]
}

// addCompareGroups adds the group "Side by side", with a subgroup for each role that any rank has; without any, there
// is no group.
func (m *merging) addCompareGroups() {
	var used [roles]bool
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			m.usedRoles(c, &used)
		}
	}
	if !slices.Contains(used[stepRole:], true) {
		return
	}
	top := m.b.Track(trace.Track{Kind: trace.KindGroup, Name: m.b.Intern(profile.SideBySide), Order: 3, Rank: trace.NoRank,
		Desc: m.b.Intern("The same row of every rank, one under another.")})
	for k := stepRole; k < roles; k++ {
		if used[k] {
			m.compare[k] = m.b.Track(trace.Track{Parent: top, Kind: trace.KindGroup, Name: m.b.Intern(roleNames[k]), Order: int32(k),
				Rank: trace.NoRank, Desc: m.b.Intern(roleDescs[k])})
		}
	}
}

// usedRoles marks the roles that a capture has events of.
func (m *merging) usedRoles(c *ranks.Capture, used *[roles]bool) {
	for l := range streamsOf(c) {
		for _, lane := range l.Lanes {
			for _, e := range lane {
				used[m.classes.role(&c.File.Events[e])] = true
			}
		}
	}
	for k := range stepsOf(c) {
		used[k] = true
	}
}

// streamsOf yields the lines of a capture that are device streams.
func streamsOf(c *ranks.Capture) iter.Seq[*inputs.TrackRow] {
	return func(yield func(*inputs.TrackRow) bool) {
		for i := range c.File.Lines {
			l := &c.File.Lines[i]
			if l.Key.Part == c.Part && l.Key.Kind == profile.RowStream && !yield(l) {
				return
			}
		}
	}
}

// stepsOf yields the role and the event of each step of a capture.
func stepsOf(c *ranks.Capture) iter.Seq2[role, uint32] {
	return func(yield func(role, uint32) bool) {
		for _, s := range c.File.Steps {
			if s.Event == profile.NoEvent || c.File.Rows[s.Row].Part != c.Part {
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

// comparedEvents returns the events of a capture for each role, in order of time.
func (m *merging) comparedEvents(c *ranks.Capture) (events [roles][]uint32) {
	f := c.File
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

// drawCompared draws the rows of rank n in the group "Side by side".
func (m *merging) drawCompared(r *ranks.Track, n int) {
	all := order.Each(r.Captures, m.comparedEvents)
	for k := stepRole; k < roles; k++ {
		if m.compare[k] == 0 {
			continue
		}
		lanes, most := make([][][]uint32, len(all)), 0
		for c := range all {
			lanes[c] = inputs.SplitLanes(r.Captures[c].File.Events, all[c][k], r.Captures[c].File.Tolerance)
			most = max(most, len(lanes[c]))
		}
		for lane := range most {
			track := m.b.Track(trace.Track{Parent: m.compare[k], Kind: trace.KindStream, Name: m.laneName(roleTracks[k]+naming.Separator+r.Name, lane), Order: int32(n*inputs.MaxLanes + lane),
				PID: r.PID, Rank: r.Rank, Host: m.b.Intern(r.Host), Desc: m.b.Intern(r.Source())})
			for c := range all {
				if lane < len(lanes[c]) {
					m.drawAgain(r.Captures[c], lanes[c][lane], track)
				}
			}
		}
	}
}

// drawAgain draws events of a capture on a track, and records the slices of those that arrows may join.
func (m *merging) drawAgain(c *ranks.Capture, events []uint32, track trace.TrackID) {
	for _, e := range events {
		id := m.drawEvent(c, &c.File.Events[e], track)
		if joined := m.drawn[c.File].joined; joined.has(int32(e)) {
			joined[int32(e)] = id
		}
	}
}
