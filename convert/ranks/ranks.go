package ranks

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A place is whose a part of a recording is.
type place struct{ rank, pid int32 }

// RanksOf tells for a recording which rank and process each of its parts is; -1 is none.
func (m *Assignment) RanksOf() func(f *inputs.ProcessProfile) func(part string) (rank, pid int32) {
	places := map[*inputs.ProcessProfile]map[string]place{}
	for i, r := range m.Tracks {
		for _, c := range r.Captures {
			if places[c.File] == nil {
				places[c.File] = map[string]place{}
			}
			places[c.File][c.Part] = place{int32(i), int32(c.pid())}
		}
	}
	return func(f *inputs.ProcessProfile) func(part string) (rank, pid int32) {
		return func(part string) (rank, pid int32) {
			if p, ok := places[f][part]; ok {
				return p.rank, p.pid
			}
			return -1, -1
		}
	}
}

// Options say which ranks are wanted, and what the user knows about them.
type Options struct {
	Ranks []naming.Want // none is all
	Hosts []string      // the beginnings of their names; none is all
	Given []GivenRank   // ranks of processes of Nsight Systems exports
}

// An Assignment says which rank each of the recordings of some inputs is of.
type Assignment struct {
	Files    []*inputs.ProcessProfile // by name, without those that were put into others
	want     Options
	syms     *trace.Symbols
	diags    *trace.Diags
	pairs    []*pair                                  // recordings of one process by two profilers
	absorbed map[*inputs.ProcessProfile][]*absorption // what was put into a recording, in this order
	synced   map[*inputs.Source]*exportClock          // of inputs whose clock was matched with that of a recording beside
	Placed   []*exportClock                           // recordings whose clock was matched with that of one beside
	Tracks   []*Track                                 // in the order of the timeline
	First    *Track                                   // whose clock is the reference where there are no requests
	Names    *naming.Names                            // of ranks and hosts, also of the requests
	// bothRoles tells that some ranks prefill, and others decode. Without that, one that
	// does only one of the two in a short capture may well do both.
	bothRoles bool
}

// Everything reports whether all ranks are wanted.
func (m *Assignment) Everything() bool { return len(m.want.Ranks) == 0 && len(m.want.Hosts) == 0 }

// EachAbsorbed calls do for each recording that was put into f, and for when times of f are on
// its clock; 0 is open.
func (m *Assignment) EachAbsorbed(f *inputs.ProcessProfile, w inputs.Extent, do func(from *inputs.ProcessProfile, w inputs.Extent)) {
	for _, a := range m.absorbed[f] {
		do(a.from, a.window(w))
	}
}

// JoinAgain puts recordings into others as before, after all of them were read again.
func (m *Assignment) JoinAgain() {
	for _, f := range m.Files {
		for _, a := range m.absorbed[f] {
			a.run()
		}
	}
}

// ForgetCollectives gives up the collectives of all ranks, which reports have seen.
func (m *Assignment) ForgetCollectives() {
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			c.File.Collectives = profile.Collectives{}
		}
	}
}

// Hosts returns the names of all hosts, some of them repeatedly.
func (m *Assignment) Hosts() (names []string) {
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
