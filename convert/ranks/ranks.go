package ranks

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A place is whose a part of a recording is.
type place struct{ rank, pid int32 }

// RanksOf tells for a recording which rank and process each of its parts is; -1 is none.
func (m *Ranks) RanksOf() func(f *inputs.Recording) func(part string) (rank, pid int32) {
	places := map[*inputs.Recording]map[string]place{}
	for i, r := range m.Tracks {
		for _, c := range r.Captures {
			if places[c.File] == nil {
				places[c.File] = map[string]place{}
			}
			places[c.File][c.Part] = place{int32(i), int32(c.pid())}
		}
	}
	return func(f *inputs.Recording) func(part string) (rank, pid int32) {
		return func(part string) (rank, pid int32) {
			if p, ok := places[f][part]; ok {
				return p.rank, p.pid
			}
			return -1, -1
		}
	}
}

// Ranks tell which rank each of the recordings of some inputs is of.
type Ranks struct {
	*inputs.Inputs
	pairs    []*pair                             // recordings of one process by two profilers
	Absorbed map[*inputs.Recording][]*absorption // what was put into a recording, in this order
	synced   map[*inputs.Indexed]*exportClock    // of inputs whose clock was matched with that of a recording beside
	Placed   []*exportClock                      // recordings whose clock was matched with that of one beside
	Tracks   []*Track                            // in the order of the timeline
	First    *Track                              // whose clock is the reference where there are no requests
	Names    *naming.Names                       // of ranks and hosts, also of the requests
	// bothRoles tells that some ranks prefill, and others decode. Without that, one that
	// does only one of the two in a short capture may well do both.
	bothRoles bool
}

func New(in *inputs.Inputs) *Ranks {
	return &Ranks{Inputs: in, Absorbed: map[*inputs.Recording][]*absorption{}, synced: map[*inputs.Indexed]*exportClock{}}
}

// Hosts returns the names of all hosts, some of them repeatedly.
func (m *Ranks) Hosts() (names []string) {
	for _, x := range m.Tracks {
		names = append(names, x.Host)
		for _, c := range x.Captures {
			names = append(names, c.known.Host)
		}
	}
	for _, f := range m.Files {
		names = append(names, f.Meta.Host)
	}
	return names
}
