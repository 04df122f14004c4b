package convert

import (
	"errors"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Evidence is what some inputs hold, for reports: requests, and ranks with what
// their profilers recorded. What can be walked again is read whenever a report walks over
// it, all else is held. The caller closes it.
type Evidence struct {
	Requests    *request.Set // of OTLP dumps; nil without any
	profile.Set              // of what profilers recorded; no Ranks without any
	// Clocks tell how the clocks of hosts relate, if EvidenceOptions.Meetings asked for
	// it; else nil. All times but those of Meetings stay on the clocks of their hosts.
	Clocks *ClockReport
	First  trace.Time // when the first capture or request begins, as its host stamped it
	inputs *inputs.Inputs
	hosts  []string // as files call them, some repeatedly
}

// EvidenceOptions say what reports will look for.
type EvidenceOptions struct {
	// Attribute tells that work will be attributed to ranges: see untwin.
	Attribute bool
	// Meetings tells to put the clocks of hosts on one and to find the same collective on
	// several ranks.
	Meetings bool
}

// Evidence prepares what was read, with [inputs.Options.Walk], for reports. It closes m if
// that fails.
func (m *Merge) Evidence(opt EvidenceOptions) (*Evidence, error) {
	p := &Evidence{Requests: m.Requests, Set: profile.Set{Syms: m.Dump.Syms}, inputs: m.Inputs}
	if opt.Meetings {
		m.readCollectives()
		if err := m.relateClocks(nil, true); err != nil {
			return nil, errors.Join(err, m.Close())
		}
		p.Clocks = m.ClockReport()
	}
	p.hosts = m.hosts()
	everything := len(m.Opt.Ranks) == 0 && len(m.Opt.Hosts) == 0
	if everything {
		p.Absences = m.absences()
	}
	m.leaveOutRanks()
	p.Meetings = m.meetings()
	if m.Requests != nil {
		p.First, _, _ = m.Requests.Bounds()
	}
	for _, r := range m.tracks {
		p.Ranks = append(p.Ranks, r.name)
		for _, c := range r.captures {
			if p.First == 0 || c.first < p.First {
				p.First = c.first
			}
		}
	}
	for _, f := range m.Files {
		if f.Source.Rows == nil {
			p.Streams = append(p.Streams, f.Stream(m.Dump.Syms, m.Dump.Args, m.ranksOf(f)))
		}
	}
	held := len(p.Streams) > 0
	for _, x := range m.Sources {
		if x.Rows == nil {
			continue
		}
		st := m.untwin(x, x.Rows(p.pids(m.Ranks, x, everything)), opt.Attribute)
		if held {
			st = unversioned{st, m.Dump.Syms}
		}
		p.Streams = append(p.Streams, st)
	}
	return p, nil
}

// OnOneClock puts the requests on one clock where they prove that the clocks of hosts
// differ, after it has reported what times cannot be right.
func (p *Evidence) OnOneClock() {
	p.inputs.OnOneClock()
	p.Requests = p.inputs.Requests
}

// unversioned calls calls as PyTorch does, without the version of CUDA in which their
// signature changed: nsys stats leaves short ones out only.
type unversioned struct {
	profile.Stream
	syms *trace.Symbols
}

func (u unversioned) Calls(yield func(*profile.Call) bool) {
	names := map[trace.Sym]trace.Sym{}
	u.Stream.Calls(func(c *profile.Call) bool {
		name, ok := names[c.Name]
		if !ok {
			name = u.syms.Intern(profile.CallName(u.syms.Name(c.Name)))
			names[c.Name] = name
		}
		c.Name = name
		return yield(c)
	})
}

// Close closes what is read from.
func (p *Evidence) Close() error { return p.inputs.Close() }

// ranksOf tells which rank and process a part of f is.
func (m *Ranks) ranksOf(f *inputs.Recording) func(part string) (rank, pid int32) {
	type place struct{ rank, pid int32 }
	places := map[string]place{}
	for i, r := range m.tracks {
		for _, c := range r.captures {
			if c.file == f {
				places[c.part] = place{int32(i), int32(c.pid())}
			}
		}
	}
	return func(part string) (rank, pid int32) {
		if p, ok := places[part]; ok {
			return p.rank, p.pid
		}
		return -1, -1
	}
}

// pids tells which rank a process of a machine is. Processes that the input does
// not name, short-lived children, are one rank together if open says that they may
// be what was asked for.
func (p *Evidence) pids(m *Ranks, x *inputs.Indexed, open bool) func(pid int32) int32 {
	rankOf := map[int32]int32{}
	for i, r := range m.tracks {
		for _, c := range r.captures {
			if c.file.Source == x {
				rankOf[int32(c.file.Rows[0].PID)] = int32(i)
			}
		}
	}
	others := int32(-1)
	if open {
		others = int32(len(p.Ranks))
		p.Ranks = append(p.Ranks, stem(x.Input.Name)+" other processes")
	}
	return func(pid int32) int32 {
		if rank, ok := rankOf[pid]; ok {
			return rank
		}
		return others
	}
}
