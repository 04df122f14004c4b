package torchdump

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A recorderReader reads one dump.
type recorderReader struct {
	set     *recorder.InFlight
	dump    *recorder.FlightDump
	symbols *trace.SymbolCache
	groups  map[string]int32          // of the dump, by name
	status  map[int64]groupStatus     // by pg_id
	shapes  map[string]recorder.Shape // by their form in the file
	stacks  map[string]int32          // by the numbers of their frames
	frames  map[any]recorder.Frame    // by their identity in the file
	// The current stack, and its key; reused.
	ofStack    []recorder.Frame
	keyOfStack []byte
	// The frames of the last operation that ended, and its number.
	ended       pickle.Value
	endedRecord int64
}

// A groupStatus is the progress of a group.
type groupStatus struct{ enqueued, completed int64 }

// A recorderEntry is an entry of a dump in either form.
type recorderEntry struct {
	group       string // name
	desc        string
	pgID        int64
	name        string // "nccl:send 1->2"
	state       string
	op          recorder.Op // the fields that need no conversion
	completedNs int64
}

// rankInName matches the end of the name of a dump.
var rankInName = lazyregexp.New(`(?:^|[^0-9])([0-9]{1,6})(?:\.[A-Za-z]+)*$`)

// rankOf returns the rank at the end of the name of a file.
func rankOf(name string) int32 {
	if m := rankInName.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[1])
		return int32(n)
	}
	return recorder.Unknown
}

// group returns the index of a group, adding it if it is new.
func (d *recorderReader) group(name, desc string) int32 {
	if desc == "undefined" {
		desc = ""
	}
	return order.At(d.groups, &d.dump.Groups, name, func() recorder.Group { return recorder.NewGroup(name, desc) })
}

// config reads a group of pg_config.
func (d *recorderReader) config(name, desc, ranks string) {
	d.dump.Groups[d.group(name, desc)].Ranks = ranksOf(ranks)
}

// ranksOf parses "[0, 1]"; nil if it is something else.
func ranksOf(text string) []int32 {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return nil
	}
	var ranks []int32
	for part := range strings.SplitSeq(text[1:len(text)-1], ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < 0 {
			return nil
		}
		ranks = append(ranks, int32(n))
	}
	return order.Distinct(ranks)
}

// add adds an entry.
func (d *recorderReader) add(e *recorderEntry) {
	op := e.op
	if e.group == "" && e.pgID >= 0 { // in version 1
		e.group = strconv.FormatInt(e.pgID, 10)
	}
	op.Group = d.group(e.group, e.desc)
	g := &d.dump.Groups[op.Group]
	if e.pgID >= 0 {
		g.ID = e.pgID
	}
	op.Src, op.Dst = recorder.Unknown, recorder.Unknown
	name := e.name
	if _, after, ok := strings.Cut(name, ":"); ok { // after the library: nccl, xccl, gloo
		name = after
	}
	if word, pair, ok := strings.Cut(name, " "); ok {
		name = word
		op.Src, op.Dst = pairOf(pair)
	}
	op.Name = d.symbols.Intern([]byte(name))
	switch e.state {
	case "completed":
		op.State = recorder.Completed
	case "started":
		op.State = recorder.Started
	}
	d.dump.Time = max(d.dump.Time, op.Created, trace.Time(e.completedNs))
	d.dump.Ops = append(d.dump.Ops, op)
}

// pairOf parses "1->2" of a send, and "2<-1" of a receive.
func pairOf(text string) (src, dst int32) {
	if s, d, ok := strings.Cut(text, "->"); ok {
		return number(s), number(d)
	}
	if d, s, ok := strings.Cut(text, "<-"); ok {
		return number(s), number(d)
	}
	return recorder.Unknown, recorder.Unknown
}

func number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return recorder.Unknown
	}
	return int32(n)
}

// finish matches the names and ids of groups, and finds the rank if the file name has none.
func (d *recorderReader) finish() {
	x := d.dump
	for i := range x.Groups {
		g := &x.Groups[i]
		if s, ok := d.status[g.ID]; ok && g.ID >= 0 {
			g.Enqueued, g.Completed = s.enqueued, s.completed
			delete(d.status, g.ID)
		}
	}
	d.nameless()
	if !d.inAll(x.Rank) {
		x.Rank = d.only()
	}
	for i := range x.Ops {
		if op := &x.Ops[i]; d.ended.Kind != pickle.Missing && op.Record == d.endedRecord && !op.Pending() {
			op.Stack = d.framesOf(d.ended)
		}
	}
	slices.SortStableFunc(x.Ops, func(a, b recorder.Op) int { return int(a.Record - b.Record) })
}

// nameless adds the groups that only have a status.
func (d *recorderReader) nameless() {
	for _, id := range slices.Sorted(maps.Keys(d.status)) {
		s := d.status[id]
		g := recorder.NewGroup("", "")
		g.ID, g.Enqueued, g.Completed = id, s.enqueued, s.completed
		d.dump.Groups = append(d.dump.Groups, g)
	}
}

// inAll reports whether a rank is in all groups with known ranks.
func (d *recorderReader) inAll(rank int32) bool {
	return rank >= 0 && !slices.ContainsFunc(d.dump.Groups, func(g recorder.Group) bool {
		_, in := slices.BinarySearch(g.Ranks, rank)
		return g.Ranks != nil && !in
	})
}

// only returns the single rank that is in all groups; Unknown if there are several.
func (d *recorderReader) only() int32 {
	found := int32(recorder.Unknown)
	for _, g := range d.dump.Groups {
		for _, r := range g.Ranks {
			switch {
			case r == found || !d.inAll(r):
			case found >= 0:
				return recorder.Unknown
			default:
				found = r
			}
		}
	}
	return found
}

// stack returns the index of a stack, given the key made from its frames.
func (d *recorderReader) stack(key []byte, frames []recorder.Frame) int32 {
	if len(frames) == 0 {
		return recorder.Unknown
	}
	return order.At(d.stacks, &d.dump.Stacks, string(key), func() []recorder.Frame { return slices.Clone(frames) })
}
