package gaps

import (
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A place is what a stack of functions says, as a profiler that interrupts threads or that
// takes the stacks of calls recorded it. Symbols are 0 where there is no such function.
type place struct {
	did      host.Did  // InPython or InNative
	function trace.Sym // the innermost one, if it is not frame
	frame    trace.Sym // the innermost one that is of no library
}

// places are what the stacks of one walk say, each looked at once.
type places struct {
	syms  *trace.Symbols
	known map[*profile.Stacks][]place // by stack; did is 0 if it was not looked at
}

func newPlaces(syms *trace.Symbols) *places {
	return &places{syms: syms, known: map[*profile.Stacks][]place{}}
}

func (p *places) of(s *profile.Sample) place {
	known := p.known[s.Stacks]
	if known == nil {
		known = make([]place, s.Stacks.Len()+1)
		p.known[s.Stacks] = known
	}
	if known[s.Stack].did == host.NotRecorded {
		known[s.Stack] = p.look(s)
	}
	return known[s.Stack]
}

func (p *places) look(s *profile.Sample) place {
	at := place{did: host.InNative}
	innermost := true
	for f := range s.Stacks.From(s.Stack) {
		fn := host.FunctionOf(p.syms.Name(f.Function), p.syms.Name(f.Module))
		if fn.Name == "" {
			continue
		}
		name := p.syms.Intern(fn.Name)
		if innermost {
			at.function, innermost = name, false
		}
		if fn.Python {
			at.did = host.InPython
		}
		if fn.Own {
			at.frame = name
			if at.function == name {
				at.function = 0
			}
			break
		}
	}
	return at
}
