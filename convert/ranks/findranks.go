package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// ErrNothing is returned if all inputs are empty.
var ErrNothing = errors.New("the inputs have no events")

// Assign groups the recordings by rank, and orders the ranks. Ranks that opt does not want stay until the
// clocks are aligned: they are evidence for the clocks, too.
func Assign(in *inputs.Loaded, opt Options) (*Assignment, error) {
	m := &Assignment{Files: slices.Clone(in.Files), want: opt, syms: in.Spans.Syms, diags: in.Diags,
		absorbed: map[*inputs.ProcessProfile][]*absorption{}, synced: map[*inputs.Source]*exportClock{}}
	captures, conflicts := m.resolveCaptures(in.Complete())
	if err := rankExports(captures, opt.Given); err != nil {
		return nil, err
	}
	if in.Both { // a copy matches an export as well as the original, so that neither would clearly be the best
		captures = inOrder(captures, leaveOutCopies(captures, m.diags))
		m.pairs = m.findPairs(captures, in)
	}
	joined := m.pairs
	if in.Walks() { // inputs that are walked stay separate
		joined, m.pairs = heldPairs(m.pairs)
		tiePairs(m.pairs)
		learnPairs(m.pairs)
	}
	captures = m.joinPairs(captures, joined)
	m.countRanks(captures)
	captures = leaveOutRepetitions(captures, m.diags)
	m.reportNames(captures, conflicts)
	m.groupCaptures(captures, in.Requests)
	if in.OnlyRecordings() && len(m.Tracks) == 0 {
		return nil, ErrNothing
	}
	m.FindProcs(in.Requests)
	m.nameRanks(in.Requests, in.Series)
	if in.OnlyRecordings() && !slices.ContainsFunc(m.Tracks, func(r *Track) bool { return m.isWanted(r, nil) }) {
		return nil, fmt.Errorf("no trace is from that rank and host; there are %s", m.rankList())
	}
	if len(m.Tracks) > 0 {
		m.First = m.Tracks[0]
	}
	m.giveUpFiles()
	return m, nil
}

// resolveCaptures returns the captures with what their names and headers say about them, and the conflicts
// between these. complete says that no filter left out events.
func (m *Assignment) resolveCaptures(complete bool) ([]*Capture, []naming.Conflict) {
	captures := m.findCaptures(complete)
	processes := map[string]int{} // by export: number of its processes that use a GPU
	for _, c := range captures {
		if c.IsOfMachine() && c.usesGPU() {
			processes[c.File.Name]++
		}
	}
	inputs := make([]naming.Input, len(captures))
	for i, c := range captures {
		inputs[i] = c.File.Describe(c.Part)
		if c.IsOfMachine() {
			describeProcess(&inputs[i], c, processes[c.File.Name])
		}
	}
	resolved, conflicts := naming.Resolve(inputs)
	for i, c := range captures {
		c.known = resolved[i]
	}
	return captures, conflicts
}

// describeProcess adds what an export says about a process. The name of the file, and the environment of
// the program that the profiler started, identify a rank only if there is just one; a process that uses no
// GPU is not a rank.
func describeProcess(in *naming.Input, c *Capture, processes int) {
	in.PID, in.Shared = cmp.Or(c.File.Meta.PID, machinePID), processes > 1 || !c.usesGPU()
	for _, h := range c.File.Meta.Hints {
		if h.From != "environment" || !in.Shared {
			in.Hints = append(in.Hints, h)
		}
	}
}

// machinePID stands for recordings that belong to no process, so that all sessions of a host put them on
// one track.
const machinePID = -1

// LeaveOut leaves out unwanted ranks. Some ranks are processes of the requests, which may be nil.
func (m *Assignment) LeaveOut(requests *request.Set) {
	m.Tracks = slices.DeleteFunc(m.Tracks, func(r *Track) bool {
		r.IsOut = !m.isWanted(r, requests)
		return r.IsOut
	})
	m.giveUpFiles()
}

// giveUpFiles releases the files that no rank has a capture of.
func (m *Assignment) giveUpFiles() {
	used := m.CapturesByFile()
	for _, f := range m.Files {
		if used[f] == 0 {
			f.GiveUp()
		}
	}
}

// CapturesByFile counts the captures that ranks have of each file.
func (m *Assignment) CapturesByFile() map[*inputs.ProcessProfile]int {
	used := map[*inputs.ProcessProfile]int{}
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			used[c.File]++
		}
	}
	return used
}

// findCaptures returns a capture for each part of each file, except for empty ones: SGLang writes a file
// without events for a rank whose profiler failed. An empty capture must not be drawn, nor be the clocks'
// reference.
func (m *Assignment) findCaptures(complete bool) []*Capture {
	var captures []*Capture
	for _, f := range m.Files {
		parts := f.Parts()
		for _, part := range parts {
			captures = append(captures, &Capture{File: f, Part: part, whole: len(parts) == 1})
		}
	}
	parallel.Each(len(captures), func(i int) { captures[i].findBounds(complete) })
	return slices.DeleteFunc(captures, func(c *Capture) bool {
		empty := c.isEmpty(complete)
		if empty {
			m.diags.Add(trace.RankEmpty.Of(c.File.Name, c.label()))
		}
		return empty
	})
}

// reportNames reports the conflicts in file names, but not that names look like those of one capture, since
// the events have been compared.
func (m *Assignment) reportNames(captures []*Capture, conflicts []naming.Conflict) {
	used, machine := map[string]bool{}, map[string]bool{}
	for _, c := range captures {
		used[c.File.Name] = true
		machine[c.File.Name] = c.IsOfMachine()
	}
	for _, c := range conflicts {
		if c.Message == trace.RankUnknown && machine[c.Path] {
			continue // not every process of a machine is a rank
		}
		if c.Message != nil && used[c.Path] {
			m.diags.Add(c.Message.Of(c.Path, c.What))
		}
	}
}

// groupCaptures groups captures into ranks.
func (m *Assignment) groupCaptures(captures []*Capture, requests *request.Set) {
	schedulers := map[int64]bool{}
	if requests != nil {
		for p := range requests.Procs {
			schedulers[requests.Procs[p].PID] = schedulers[requests.Procs[p].PID] || requests.Procs[p].Schedules
		}
	}
	resolved := order.Each(captures, func(c *Capture) naming.Resolved { return c.known })
	grouped := make([]bool, len(captures))
	for _, g := range naming.Captures(resolved) {
		var files []*Capture
		for _, i := range g.Files {
			grouped[i] = true
			files = append(files, captures[i])
		}
		m.addRanks(files, schedulers)
	}
	for i, c := range captures {
		if !grouped[i] {
			m.Tracks = append(m.Tracks, newRankTrack(c))
		}
	}
}

// IsOfMachine reports whether a capture is from an input that has all processes of a machine.
func (c *Capture) IsOfMachine() bool { return c.File.Source.Format.Machine }

// isWanted reports whether a rank should be kept. A rank that is a process of the dump can also be selected
// by its name there.
func (m *Assignment) isWanted(r *Track, requests *request.Set) bool {
	opt, place := &m.want, naming.Place{Role: r.Role, Host: r.Host, Rank: r.Rank}
	isRank := func(w naming.Want) bool {
		return m.Names.Is(place, w) || r.Proc != request.None && requests.IsRank(r.Proc, w)
	}
	isHost := func(h string) bool {
		return m.Names.IsHost(r.Host, h) || r.Proc != request.None && requests.IsOnHost(r.Proc, h)
	}
	return (len(opt.Ranks) == 0 || slices.ContainsFunc(opt.Ranks, isRank)) && (len(opt.Hosts) == 0 || slices.ContainsFunc(opt.Hosts, isHost))
}

// addRanks groups captures that claim the same rank. Captures that overlap in time, or are from two of the dump's
// schedulers, cannot be of one process: each starts a rank of its own.
func (m *Assignment) addRanks(captures []*Capture, schedulers map[int64]bool) {
	slices.SortStableFunc(captures, func(a, b *Capture) int { return cmp.Compare(a.First, b.First) })
	var open []*Track
	for _, c := range captures {
		at := slices.IndexFunc(open, func(r *Track) bool {
			return r.takes(c) && !r.isAnother(c, schedulers)
		})
		if at >= 0 {
			open[at].Captures = append(open[at].Captures, c)
			open[at].Rank = open[at].Rank.Fill(c.known.Rank)
			open[at].kinds = open[at].kinds.and(c.stepKinds())
			continue
		}
		next := newRankTrack(c)
		// These may be several servers on unknown hosts, unless their runs or roles differ.
		if duplicate := slices.IndexFunc(open, func(r *Track) bool {
			return r.Run == next.Run && r.kinds.role() == next.kinds.role() && !r.isAnother(c, schedulers)
		}); duplicate >= 0 {
			m.diags.Add(trace.RankOverlap.Of(c.File.Name,
				c.label(), open[duplicate].Captures[0].File.Name, cmp.Or(next.Rank.String(), "one rank"), c.File.Name))
		}
		open = append(open, next)
	}
	m.Tracks = append(m.Tracks, open...)
}

// takes reports whether a capture that begins after all of r's may be of the same process: it overlaps none
// of them, unless two profilers recorded it.
func (r *Track) takes(c *Capture) bool {
	for _, o := range r.Captures {
		after := o.File.Meta.Origin == c.File.Meta.Origin && o.Last <= c.First
		if !after && !c.continues(o) && !c.recordedBeside(o) {
			return false
		}
	}
	return true
}

// isAnother reports whether a capture is of another process than r, although both claim the same rank: their jobs have
// different sizes, they ran on different accelerator models, both schedule requests but have different pids, or they
// have different roles. A restarted server may still continue the rank.
func (r *Track) isAnother(c *Capture, schedulers map[int64]bool) bool {
	if o := r.Captures[0]; o.worldSize() != c.worldSize() && o.worldSize() > 0 && c.worldSize() > 0 ||
		o.model() != c.model() && o.model() != "" && c.model() != "" && o.File.Source.Format == c.File.Source.Format { // two profilers may use different names
		return true
	}
	pid, does := c.pid(), c.stepKinds().role()
	if r.PID == 0 || pid == 0 || r.PID == pid {
		return false
	}
	return schedulers[r.PID] && schedulers[pid] || does != "" && r.kinds.role() != "" && does != r.kinds.role()
}

// worldSize returns the number of ranks in the job of a capture, 0 if its file does not say.
func (c *Capture) worldSize() int32 { return c.File.Meta.WorldSize }

// model returns the accelerator model of the capture's machine; "" if it is unknown or mixed.
func (c *Capture) model() string {
	model := ""
	for _, d := range c.File.Meta.Devices {
		if model != "" && d.Name != model {
			return ""
		}
		model = d.Name
	}
	return model
}

// continues reports whether c and o are exports of the same process that follow each other, except for some
// overlap at their ends. Two parts of one session have the same start until their rows are read.
func (c *Capture) continues(o *Capture) bool {
	if !c.File.Source.Format.Session || !o.File.Source.Format.Session || c.pid() == 0 || c.pid() != o.pid() || c.known.Host == "" || c.known.Host != o.known.Host {
		return false
	}
	const most = 4 // the overlap is at most 1/most of the shorter one
	shorter := min(c.Last-c.First, o.Last-o.First)
	return c.File.Meta.Origin == o.File.Meta.Origin && (c.First == o.First || o.Last-c.First <= shorter/most)
}

// recordedBeside reports whether c and o are concurrent recordings of one process by two profilers.
func (c *Capture) recordedBeside(o *Capture) bool { return c.process != nil && c.process == o.process }

func newRankTrack(c *Capture) *Track {
	t := &Track{Rank: c.known.Rank, Host: c.known.Host, Run: c.known.Name.Run, PID: c.pid(), Proc: request.None, Captures: []*Capture{c}}
	devices := map[string]bool{}
	for i := range c.File.Lines {
		if l := &c.File.Lines[i]; l.Key.Part == c.Part && l.Key.Kind == profile.RowStream {
			devices[l.Key.PID] = true
		}
	}
	t.Devices = len(devices)
	t.kinds = c.stepKinds()
	return t
}

// stepKinds returns the kinds of steps in a capture.
func (c *Capture) stepKinds() (kinds stepKinds) {
	for _, s := range c.File.Steps {
		if c.File.Rows[s.Row].Part != c.Part {
			continue
		}
		switch s.Kind {
		case profile.StepPrefill:
			kinds.prefill = true
		case profile.StepDecode:
			kinds.decode = true
		}
	}
	return kinds
}

// stepKinds are the kinds of steps that a scheduler runs: a prefill server never decodes, and vice versa.
type stepKinds struct{ prefill, decode bool }

func (k stepKinds) and(o stepKinds) stepKinds {
	return stepKinds{prefill: k.prefill || o.prefill, decode: k.decode || o.decode}
}

// role returns the role of the server, "" if it is unknown.
func (k stepKinds) role() string {
	switch {
	case k.prefill && !k.decode:
		return request.Prefill.String()
	case k.decode && !k.prefill:
		return request.Decode.String()
	}
	return ""
}

// FindProcs finds the scheduler in the OTLP dump that each rank is: the one with the same pid, since both
// sides recorded the same process. Two containers may use the same pid; then rank and role must decide, and
// an ambiguous match is dropped.
func (m *Assignment) FindProcs(requests *request.Set) {
	if requests == nil {
		return
	}
	for _, r := range m.Tracks {
		r.Proc = request.None
		for p := range requests.Procs {
			if !r.couldBe(&requests.Procs[p]) {
				continue
			}
			if r.Proc != request.None {
				r.Proc = request.None
				break
			}
			r.Proc = p
		}
	}
}

// couldBe reports whether nothing rules out that r is proc.
func (r *Track) couldBe(proc *request.Proc) bool {
	role := r.kinds.role()
	return r.PID != 0 && proc.PID == r.PID && proc.Schedules && !r.Rank.Contradicts(proc.Rank) &&
		(role == "" || proc.Role == request.Unified || proc.Role.String() == role)
}
