package convert

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/trace"
)

// Evidence is what some inputs hold, for reports: requests, and ranks with what
// their profilers recorded. PyTorch traces are held, Nsight Systems exports are read
// whenever a report walks over them. The caller closes it.
type Evidence struct {
	Requests    *request.Set // of OTLP dumps; nil without any
	profile.Set              // of PyTorch traces and exports; no Ranks without any
	// Clocks tell how the clocks of hosts relate, if ReadOptions.Meetings asked for
	// it; else nil. All times but those of Meetings stay on the clocks of their hosts.
	Clocks  *ClockReport
	First   trace.Time // when the first capture or request begins, as its host stamped it
	exports []*rows.Source
	hosts   []string // as files call them, some repeatedly

	assembled *assembly.Assembly // of Requests, until OnOneClock
}

// ReadEvidence reads inputs as Read does, but no rows of Nsight Systems exports
// yet.
func ReadEvidence(inputs []Input, opt ReadOptions, diags *trace.Diags) (*Evidence, error) {
	opt.outlines = &outlines{}
	m, err := Read(inputs, opt, diags)
	if err != nil {
		return nil, errors.Join(err, closeAll(opt.outlines.exports))
	}
	p := &Evidence{Requests: m.Requests, assembled: m.assembled, Set: profile.Set{Syms: m.dump.Syms}, exports: opt.outlines.exports}
	if opt.Meetings {
		m.readCollectives(&opt)
		if err := m.relateClocks(nil, true); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.Clocks = m.Clocks()
	}
	p.hosts = m.hosts()
	if len(opt.Ranks) == 0 && len(opt.Hosts) == 0 {
		p.Absences = m.absences()
	}
	m.leaveOutRanks()
	p.Meetings = m.meetings()
	if m.Requests != nil {
		p.First, _, _ = m.Requests.Bounds()
	}
	for _, r := range m.ranks {
		p.Ranks = append(p.Ranks, r.name)
		for _, c := range r.captures {
			if p.First == 0 || c.first < p.First {
				p.First = c.first
			}
		}
	}
	open, traces := len(opt.Ranks) == 0 && len(opt.Hosts) == 0, false
	for _, f := range m.files {
		if !f.isExport() {
			traces = true
			p.Streams = append(p.Streams, f.Stream(m.dump.Syms, m.dump.Args, m.ranksOf(f)))
		}
	}
	for _, src := range p.exports {
		st := m.untwin(src, nsysexport.NewStream(src, p.pids(m, src, open)), opt.Attribute)
		if traces {
			st = unversioned{st, m.dump.Syms}
		}
		p.Streams = append(p.Streams, st)
	}
	return p, nil
}

// OnOneClock puts the requests on one clock where they prove that the clocks of hosts
// differ, after it has reported what times cannot be right.
func (p *Evidence) OnOneClock() {
	p.assembled.Set.ReportTimes()
	p.assembled.OnOneClock()
	p.assembled.Release()
	p.Requests = p.assembled.Set
	p.assembled = nil
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
func (p *Evidence) Close() error { return closeAll(p.exports) }

func closeAll(exports []*rows.Source) error {
	var errs []error
	for _, src := range exports {
		errs = append(errs, src.Close())
	}
	return errors.Join(errs...)
}

// outlines are the exports that were opened, and are not read yet.
type outlines struct {
	mu      sync.Mutex
	exports []*rows.Source // by name
}

// leaveOutRepetitions returns the recordings without those of exports that repeat
// another, and forgets these.
func (o *outlines) leaveOutRepetitions(m *Merge, files []*recording) []*recording {
	var kept []*rows.Source
	for _, src := range o.exports {
		same := slices.IndexFunc(kept, func(k *rows.Source) bool { return nsysexport.Repeats(src, k) })
		if same < 0 {
			kept = append(kept, src)
			continue
		}
		m.notice("capture-repeated", src.Name, "it has the same session and rows as %s; left out", kept[same].Name)
		files = slices.DeleteFunc(files, func(f *recording) bool { return f.Name == src.Name })
		src.Close()
	}
	o.exports = kept
	return files
}

// open opens an export and returns what it tells of its processes.
func (o *outlines) open(path string, opt rows.Options) ([]*profile.Profile, error) {
	opt.Brief = true
	src, err := rows.Open(path, opt)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at, _ := slices.BinarySearchFunc(o.exports, path, func(s *rows.Source, name string) int {
		return strings.Compare(s.Name, name)
	})
	o.exports = slices.Insert(o.exports, at, src)
	return nsysexport.Outline(src), nil
}

// ranksOf tells which rank and process a part of f is.
func (m *Merge) ranksOf(f *recording) func(part string) (rank, pid int32) {
	type place struct{ rank, pid int32 }
	places := map[string]place{}
	for i, r := range m.ranks {
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

// pids tells which rank a process of an export is. Processes that the export does
// not name, short-lived children, are one rank together if open says that they may
// be what was asked for.
func (p *Evidence) pids(m *Merge, src *rows.Source, open bool) func(pid int32) int32 {
	ranks := map[int32]int32{}
	for i, r := range m.ranks {
		for _, c := range r.captures {
			if c.file.Name == src.Name {
				ranks[int32(c.file.Rows[0].PID)] = int32(i)
			}
		}
	}
	others := int32(-1)
	if open {
		others = int32(len(p.Ranks))
		p.Ranks = append(p.Ranks, stem(src.Name)+" other processes")
	}
	return func(pid int32) int32 {
		if rank, ok := ranks[pid]; ok {
			return rank
		}
		return others
	}
}
