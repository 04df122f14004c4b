package convert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/internal/tracename"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// findRanks groups what the files hold by rank, and orders the ranks that opt
// wants.
func (m *Merge) findRanks(opt *ReadOptions) error {
	var captures []*capture
	var inputs []tracename.Input
	for _, f := range m.files {
		for _, part := range f.parts() {
			captures = append(captures, &capture{file: f, part: part, first: f.First, last: f.Last})
			inputs = append(inputs, f.describe(part))
		}
	}
	resolved, conflicts := tracename.Resolve(inputs)
	for _, c := range conflicts {
		m.diags.Add(trace.Diag{Severity: trace.Notice, Code: "rank-" + c.Kind, Pos: trace.Pos{File: c.Path, Offset: -1}, Msg: c.Msg})
	}
	grouped := make([]bool, len(captures))
	for _, g := range tracename.Captures(resolved) {
		files := slices.DeleteFunc(slices.Clone(g.Files), func(i int) bool { grouped[i] = true; return m.isRepetition(captures, g.Files, i) })
		m.addRanks(captures, resolved, files)
	}
	for i, c := range captures {
		if !grouped[i] {
			m.ranks = append(m.ranks, newRankTrack(&resolved[i], c))
		}
	}
	before := len(m.ranks)
	m.ranks = slices.DeleteFunc(m.ranks, func(r *rankTrack) bool { return !opt.wants(r) })
	if len(m.ranks) == 0 && before > 0 && m.Requests == nil {
		return fmt.Errorf("none of %d traces is of that rank and host", before)
	}
	m.findProcs()
	m.nameRanks()
	for _, r := range m.ranks {
		for _, c := range r.captures {
			c.file.pending++
		}
	}
	return nil
}

// wants tells whether a rank is to be kept.
func (opt *ReadOptions) wants(r *rankTrack) bool {
	isRank := func(w trace.Rank) bool { return w.Matches(r.rank) }
	isHost := func(h string) bool { return h != "" && strings.HasPrefix(r.host, h) }
	return (len(opt.Ranks) == 0 || slices.ContainsFunc(opt.Ranks, isRank)) && (len(opt.Hosts) == 0 || slices.ContainsFunc(opt.Hosts, isHost))
}

// parts returns the parts that a file has events of, in order.
func (f *torchFile) parts() []string {
	var parts []string
	for i := range f.Rows {
		if p := f.Rows[i].Part; !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	if len(parts) > 1 { // rows without a part are nobody's: the merger writes all pids with one
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" && !f.hasEvents(p) })
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		parts = []string{""}
	}
	return parts
}

func (f *torchFile) hasEvents(part string) bool {
	return slices.ContainsFunc(f.lines, func(l line) bool { return l.key.part == part && !l.empty() })
}

// describe returns what is known of a part of f before ranks are compared.
func (f *torchFile) describe(part string) tracename.Input {
	in := tracename.Input{Path: f.Name, Label: f.source.input.Label, HeaderRank: f.Meta.Rank, WorldSize: f.Meta.WorldSize, HeaderHost: f.Meta.Host}
	if part != "" {
		// The header of a merged file is that of its first rank.
		in.Label, in.HeaderRank, in.HeaderHost = strings.TrimPrefix(f.source.input.Label+"/"+part, "/"), -1, ""
	}
	for i := range f.Rows {
		if p := f.Rows[i].Process; p != "" && f.Rows[i].Part == part && !slices.Contains(in.Processes, p) {
			in.Processes = append(in.Processes, p)
		}
	}
	return in
}

// isRepetition tells whether captures[i] is one of the given captures before it
// once more: a copy of its file, or a file and its compressed form.
func (m *Merge) isRepetition(captures []*capture, files []int, i int) bool {
	c := captures[i]
	for _, j := range files {
		o := captures[j]
		if j == i {
			return false
		}
		if o.first == c.first && o.last == c.last && o.file.Total == c.file.Total && o.part == c.part && o.file != c.file {
			m.diags.Add(trace.Diag{Severity: trace.Notice, Code: "capture-repeated", Pos: trace.Pos{File: c.file.Name, Offset: -1},
				Msg: fmt.Sprintf("has the same events as %s; left out", o.file.Name)})
			return true
		}
	}
	return false
}

// addRanks adds the captures of one rank. Captures that overlap in time cannot
// be of one process: each then begins a rank of its own.
func (m *Merge) addRanks(captures []*capture, resolved []tracename.Resolved, files []int) {
	slices.SortStableFunc(files, func(i, j int) int { return cmp.Compare(captures[i].first, captures[j].first) })
	var open []*rankTrack
	for _, i := range files {
		c := captures[i]
		at := slices.IndexFunc(open, func(r *rankTrack) bool { return r.captures[len(r.captures)-1].last <= c.first })
		if at >= 0 {
			open[at].captures = append(open[at].captures, c)
			continue
		}
		open = append(open, newRankTrack(&resolved[i], c))
	}
	m.ranks = append(m.ranks, open...)
}

func newRankTrack(r *tracename.Resolved, c *capture) *rankTrack {
	t := &rankTrack{rank: r.Rank, host: r.Host, run: r.Name.Run, proc: request.None, captures: []*capture{c}}
	devices := map[string]bool{}
	for i := range c.file.lines {
		l := &c.file.lines[i]
		switch {
		case l.key.part != c.part:
		case l.key.kind == chrometrace.RowStream:
			devices[l.key.pid] = true
		case l.key.kind == chrometrace.RowThread && t.pid == 0:
			t.pid = l.row.PID
		}
	}
	t.devices = len(devices)
	t.kinds = c.stepKinds()
	return t
}

// stepKinds tells which kinds of steps a capture has.
func (c *capture) stepKinds() (kinds stepKinds) {
	for _, s := range c.file.Steps {
		if c.file.Rows[s.Row].Part != c.part {
			continue
		}
		switch s.Kind {
		case chrometrace.StepPrefill:
			kinds.prefill = true
		case chrometrace.StepDecode:
			kinds.decode = true
		}
	}
	return kinds
}

// stepKinds are the kinds of steps that a scheduler runs: a prefill server never
// decodes, and the other way around.
type stepKinds struct{ prefill, decode bool }

// role returns what the server does, "" if that is unknown.
func (k stepKinds) role() string {
	switch {
	case k.prefill && !k.decode:
		return request.Prefill.String()
	case k.decode && !k.prefill:
		return request.Decode.String()
	}
	return ""
}

// findProcs finds out which scheduler of the OTLP dump each rank is: that with
// the same pid, since both see the same process, and with no other rank. Two
// containers may have equal pids; then the rank and what the server does must
// tell.
func (m *Merge) findProcs() {
	if m.Requests == nil {
		return
	}
	for _, r := range m.ranks {
		r.proc = request.None
		for p := range m.Requests.Procs {
			if !r.couldBe(&m.Requests.Procs[p]) {
				continue
			}
			if r.proc != request.None {
				r.proc = request.None
				break
			}
			r.proc = p
		}
	}
}

// couldBe tells whether nothing speaks against r being proc.
func (r *rankTrack) couldBe(proc *request.Proc) bool {
	agree := func(a, b int16) bool { return a < 0 || b < 0 || a == b }
	role := r.kinds.role()
	return r.pid != 0 && proc.PID == r.pid && strings.Contains(proc.Label, "Scheduler") &&
		agree(r.rank.TP, proc.Rank.TP) && agree(r.rank.PP, proc.Rank.PP) && agree(r.rank.DP, proc.Rank.DP) &&
		(role == "" || proc.Role == request.Unified || proc.Role.String() == role)
}

// nameRanks orders the ranks and gives them names that tell them apart.
func (m *Merge) nameRanks() {
	hosts, roles := map[string]bool{}, map[string]bool{}
	for _, r := range m.ranks {
		r.role = r.kinds.role()
		if r.proc != request.None {
			r.role = m.Requests.Procs[r.proc].Role.String()
		}
		hosts[r.host], roles[r.role] = true, true
	}
	// Where all ranks do the same, that is no part of their names.
	several := roles[request.Prefill.String()] && roles[request.Decode.String()]
	taken := map[string]int{}
	place := map[string]int{request.Prefill.String(): 1, request.Decode.String(): 2}
	slices.SortStableFunc(m.ranks, func(a, b *rankTrack) int {
		x, y := 0, 0
		if several {
			x, y = place[a.role], place[b.role]
		}
		return cmp.Or(cmp.Compare(x, y), cmpBool(a.rank != trace.NoRank, b.rank != trace.NoRank), a.rank.Compare(b.rank),
			strings.Compare(a.host, b.host), strings.Compare(a.captures[0].file.Name, b.captures[0].file.Name))
	})
	for _, r := range m.ranks {
		r.name = r.rank.String()
		if r.name == "" {
			r.name = stem(r.captures[0].file.Name)
		}
		if several && r.role != "" {
			r.name = r.role + " " + r.name
		}
		if len(hosts) > 1 && r.host != "" {
			r.name += " (" + r.host + ")"
		}
		if taken[r.name]++; taken[r.name] > 1 {
			r.name += fmt.Sprintf(" #%d", taken[r.name])
		}
	}
}

// stem returns the name of a file without folders and what all traces end in.
func stem(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".trace", ".pt"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
