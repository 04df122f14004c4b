package convert

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/trace"
)

// torchFile is a Chrome JSON trace under way to the timeline.
type torchFile struct {
	*chrometrace.File
	source *candidate
	lines  []line
	lineOf []int32         // of each row
	slices []trace.SliceID // of each event, in the group "By rank"; 0 is none
	// joined are the slices of events that arrows between files may join,
	// collectives and steps: those in the group "Side by side", else in "By rank".
	joined  map[int32]trace.SliceID
	pending int // captures that are not drawn yet
}

// newTorchFile brings the events of f in order.
func newTorchFile(f *chrometrace.File, source *candidate) *torchFile {
	t := &torchFile{source: source}
	t.replace(f)
	return t
}

// replace puts f in the place of what was read before from the same file.
func (t *torchFile) replace(f *chrometrace.File) {
	t.File, t.joined = f, map[int32]trace.SliceID{}
	t.lines, t.lineOf = sortLines(f)
	for i := range f.Collectives {
		if c := &f.Collectives[i]; c.Event != chrometrace.NoEvent && c.OnGPU {
			t.joined[c.Event] = 0
		}
	}
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Event != chrometrace.NoEvent {
			t.joined[s.Event] = 0
		}
	}
}

// capture is what one file says about one rank.
type capture struct {
	file        *torchFile
	part        string // of a merged file
	first, last trace.Time
	clock       int // index into merging.clocks
	time        func(trace.Time) trace.Time
}

// rankTrack is a rank of the timeline: all captures of one process.
type rankTrack struct {
	name     string
	rank     trace.Rank
	role     string // "prefill", "decode", "unified"; "" is unknown
	host     string // "" is unknown
	pid      int64
	run      string // what the names of the files of one capture share; "" is unknown
	kinds    stepKinds
	proc     int // of Requests that it is, or request.None
	clock    int
	devices  int // how many devices its streams are on
	captures []*capture
	track    trace.TrackID
}

// source says where the events of r come from, for the viewer's help popup.
func (r *rankTrack) source() string {
	var b strings.Builder
	b.WriteString("PyTorch profiler trace")
	for i, c := range r.captures {
		separator := ", "
		if i == 0 {
			separator = " "
		}
		b.WriteString(separator + c.file.Name)
	}
	if r.host != "" {
		fmt.Fprintf(&b, ", host %s", r.host)
	}
	if r.pid != 0 {
		fmt.Fprintf(&b, ", pid %d", r.pid)
	}
	return b.String()
}
