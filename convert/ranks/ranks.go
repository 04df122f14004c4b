package ranks

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A place is the rank and process of a part of a recording.
type place struct{ rank, pid int32 }

// RanksOf returns a function that maps each part of a recording to its rank and process; -1 is none.
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

// Options say which ranks are wanted, and what the user knows about ranks.
type Options struct {
	Ranks []naming.Want // none is all
	Hosts []string      // prefixes of their names; none is all
	Given []GivenRank   // ranks of processes of Nsight Systems exports
}

// An Assignment says which rank each recording is from.
type Assignment struct {
	Files    []*inputs.ProcessProfile // by name, without those that were absorbed by others
	want     Options
	syms     *trace.Symbols
	diags    *trace.Diags
	pairs    []*pair                                  // concurrent recordings of one process by two profilers
	absorbed map[*inputs.ProcessProfile][]*absorption // what each recording absorbed, in order
	synced   map[*inputs.Source]*exportClock          // by input: its clock, matched with that of a concurrent trace
	Placed   []*exportClock                           // traces whose clock was matched with that of a concurrent export
	Tracks   []*Track                                 // in timeline order
	First    *Track                                   // its clock is the reference if there are no requests
	Names    *naming.Names                            // of ranks and hosts, including those of the requests
	// bothRoles says that some ranks prefill and others decode. Otherwise, a rank that does only one of the
	// two in a short capture may well do both.
	bothRoles bool
}

// Everything reports whether all ranks are wanted.
func (m *Assignment) Everything() bool { return len(m.want.Ranks) == 0 && len(m.want.Hosts) == 0 }

// EachAbsorbed calls do for each recording that f absorbed, with window w converted from f's clock to its
// own; 0 is no bound.
func (m *Assignment) EachAbsorbed(f *inputs.ProcessProfile, w inputs.Extent, do func(from *inputs.ProcessProfile, w inputs.Extent)) {
	for _, a := range m.absorbed[f] {
		do(a.from, a.window(w))
	}
}

// JoinAgain repeats the absorptions after all recordings were read again.
func (m *Assignment) JoinAgain() {
	for _, f := range m.Files {
		for _, a := range m.absorbed[f] {
			a.run()
		}
	}
}

// ForgetCollectives releases the collectives of all ranks, once reports have seen them.
func (m *Assignment) ForgetCollectives() {
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			c.File.Collectives = profile.Collectives{}
		}
	}
}

// Hosts returns the names of all hosts, with repetitions.
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
