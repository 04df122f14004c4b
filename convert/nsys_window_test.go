package convert

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A window of exports, alone and with traces, shows the same events as the whole.
func TestNsysWindowOfSimulatedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *nsys.Config)
		torch  bool
		filter profile.Filter
	}{
		"export":            {func(*nsys.Config) {}, false, profile.Filter{}},
		"both":              {func(*nsys.Config) {}, true, profile.Filter{}},
		"both, no start":    {func(n *nsys.Config) { n.Unclocked = []string{"unified-0", "unified-1"} }, true, profile.Filter{}},
		"three sessions":    {func(n *nsys.Config) { n.Pieces = 3 }, true, profile.Filter{}},
		"kernels of both":   {func(*nsys.Config) {}, true, profile.Filter{Cats: []string{"kernel"}}},
		"ranges of both":    {func(*nsys.Config) {}, true, profile.Filter{Cats: []string{"NVTX", "user_annotation"}}},
		"long ones of both": {func(*nsys.Config) {}, true, profile.Filter{MinDur: 40_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, 9, c.change)
			args := []string{r.exports()}
			if c.torch {
				args = append(args, r.traces())
			}
			draw := func(window bool, from, to trace.Time) (*merged, *trace.Trace) {
				opt := inputs.Options{Filter: c.filter}
				opt.Filter.IndexOnly = window
				m, _ := readAll(t, opt, args...)
				if err := m.align(nil, true); err != nil {
					t.Fatal(err)
				}
				if window {
					if err := m.readWindow(from, to); err != nil {
						t.Fatal(err)
					}
				}
				tr := m.layout(drawing.Options{})
				if err := trace.Validate(tr); err != nil {
					t.Fatal(err)
				}
				return m, tr
			}
			m, whole := draw(false, 0, 0)
			first, last := m.clocks.Bounds()
			from, to := first+(last-first)*2/5, first+(last-first)*3/5
			_, part := draw(true, from, to)
			want, got := drawnSlices(whole, from, to), drawnSlices(part, from, to)
			wrong := 0
			for s, n := range want {
				if got[s] != n && wrong < 5 {
					wrong++
					t.Errorf("%s is drawn %d times, want %d", s, got[s], n)
				}
			}
			for s, n := range got {
				if want[s] == 0 && wrong < 5 {
					wrong++
					t.Errorf("%s is drawn %d times, want none", s, n)
				}
			}
			if len(want) < 30 {
				t.Errorf("%d slices are in the window; the test wants more", len(want))
			}
		})
	}
}

// drawnSlices returns the slices that overlap a window, with their tracks, ignoring lanes.
func drawnSlices(tr *trace.Trace, from, to trace.Time) map[string]int {
	all := map[string]int{}
	for _, s := range tr.Slices[1:] {
		if s.End() < from || s.Time > to {
			continue
		}
		path := ""
		for id := s.Track; id != 0; id = tr.Tracks[id].Parent {
			name, _, _ := strings.Cut(tr.Syms.Name(tr.Tracks[id].Name), " (")
			path = name + " > " + path
		}
		all[fmt.Sprintf("%s%s %d+%d", path, tr.Syms.Name(s.Name), s.Time, s.Dur)]++
	}
	return all
}

// The steps found on the GPU, and NCCL's facts about the kernels it launched, equal those that the
// simulator planted.
func TestNsysStepsAndCollectives(t *testing.T) {
	for _, schema := range nsys.Schemas {
		for _, graphs := range []nsys.GraphTrace{"", nsys.GraphsByNode, nsys.GraphsWhole} {
			if graphs == nsys.GraphsWhole && schema < nsys.Schema2022 {
				continue
			}
			r := record(t, 19, func(n *nsys.Config) {
				n.Schema, n.Orphans = schema, 0
				if n.Torch.Graphs = graphs != ""; graphs != "" {
					n.GraphTrace = graphs
				}
			})
			m, _ := readAll(t, inputs.Options{}, r.exports())
			for _, f := range r.nsys.Files {
				for i := range f.Processes {
					p := &f.Processes[i]
					for _, file := range m.of.Files {
						if file.Meta.PID == int64(p.PID) && filepath.Base(file.Name) == f.Name {
							checkSteps(t, m, file, p)
							checkMessages(t, m, file, p)
						}
					}
				}
			}
		}
	}
}

func checkSteps(t *testing.T, m *merged, f *inputs.ProcessProfile, p *nsys.ProcessTruth) {
	t.Helper()
	type sum struct {
		n    int
		span int64
	}
	got := map[string]sum{}
	for _, s := range f.Steps {
		name := m.in.Spans.Syms.Name(s.Name)
		x := got[name]
		if !s.OnGPU {
			x.n++
		} else {
			x.span += s.Dur
		}
		got[name] = x
	}
	for _, s := range p.Steps {
		if x := got[s.Name]; x.n != s.N || x.span != s.GPUSpanNs {
			t.Errorf("%s of process %d: %d steps, %d ns on the GPU; want %d, %d", s.Name, p.PID, x.n, x.span, s.N, s.GPUSpanNs)
		}
	}
	if len(got) != len(p.Steps) {
		t.Errorf("process %d has steps %v", p.PID, got)
	}
}

func checkMessages(t *testing.T, m *merged, f *inputs.ProcessProfile, p *nsys.ProcessTruth) {
	t.Helper()
	var bytes uint64
	seqs := map[int64]bool{}
	for i := range f.Collectives.Len() {
		c := f.Collectives.At(i)
		if c.Op == 0 {
			continue
		}
		if c.In >= 0 {
			bytes += uint64(c.In)
		}
		if c.Seq >= 0 {
			if seqs[c.Seq] {
				t.Errorf("process %d has two collectives of number %d", p.PID, c.Seq)
			}
			seqs[c.Seq] = true
		}
	}
	if bytes != p.MessageBytes {
		t.Errorf("process %d sends %d bytes, want %d", p.PID, bytes, p.MessageBytes)
	}
	if p.Comm != nil && (len(seqs) == 0 || !seqs[0]) {
		t.Errorf("process %d has no collective that is numbered", p.PID)
	}
}

// Two consecutive traces of a process lie within one Nsight Systems session, which also recorded
// the time between them.
func TestDuplicatesOfTwoTraces(t *testing.T) {
	config := simulator.DefaultConfig(23)
	config.Mode, config.Unified, config.Requests = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 1}, 60
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := nsys.DefaultConfig(run)
	n.Torch.Stacks, n.Torch.Gzip, n.Torch.Layers, n.Torch.RecordHost = 0, false, 4, true
	nsys, err := nsys.WriteDir(dir, run, n)
	if err != nil {
		t.Fatal(err)
	}
	args, parts := []string{filepath.Join(dir, "nsys", "*.sqlite")}, 0
	for i, share := range []time.Duration{0, 2} {
		c, third := n.Torch, (n.Torch.To-n.Torch.From)/3
		c.From, c.To = n.Torch.From+share*third, n.Torch.From+(share+1)*third
		part := filepath.Join(dir, fmt.Sprint(i))
		truth, err := torch.WriteDir(part, run, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range truth.Files[0].Events {
			if e.Name == "kernel" {
				parts += e.Count
			}
		}
		args = append(args, filepath.Join(part, "torch", "*.json"))
	}
	m, tr := mergeAll(t, args...)
	p := &nsys.Files[0].Processes[0]
	if rank := rankOfProcess(t, m, nsys.Files[0].Host, p.PID); len(rank.Captures) != 2 {
		t.Errorf("%s has %d captures", rank.Name, len(rank.Captures))
	}
	kernels := 0
	for path, n := range paths(tr) {
		if strings.HasPrefix(path, "Side by side > Comp") && strings.HasSuffix(path, " · TP0") || path == "Side by side > Communication > communication · TP0" {
			kernels += n
		}
	}
	if kernels != p.Kernels || parts >= p.Kernels {
		t.Errorf("TP0 has %d kernels, want %d, of which the traces have %d", kernels, p.Kernels, parts)
	}
}

// A trace with an unknown time base is placed by the export of the same process.
func TestExportPlacesTrace(t *testing.T) {
	r := record(t, 29, nil)
	for i := range r.torch.Files {
		name := filepath.Join(r.dir, "torch", r.torch.Files[i].Name)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data = regexp.MustCompile(`"baseTimeNanoseconds": *\d+,?`).ReplaceAll(data, nil)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m, tr := mergeAll(t, r.exports(), r.traces())
	for _, l := range m.clocks.Report(m.of).Clocks {
		t.Log(l.String())
	}
	first, _, _ := tr.Bounds()
	if at := r.nsys.Files[0].StartNs; int64(first) < at-1e9 || int64(first) > at+1e9 {
		t.Errorf("the timeline begins at %d, and the recording at %d", first, at)
	}
	for _, rank := range m.of.Tracks {
		if fit := m.clocks.HostClocks[rank.Clock].Fit; fit.Why == trace.SyncAssumed {
			t.Errorf("the clock of %s is assumed", rank.Name)
		}
	}
}

// Some ranks of a server were recorded by PyTorch's profiler and others by Nsight Systems: the
// order of kernels inside graphs relates their clocks.
func TestRanksOfBothKinds(t *testing.T) {
	r := record(t, 31, func(n *nsys.Config) { n.Torch.Graphs, n.Payloads = true, false })
	args := []string{filepath.Join(r.dir, "nsys", r.nsys.Files[1].Name)}
	for i := range r.torch.Files {
		if f := &r.torch.Files[i]; f.Host == r.nsys.Files[0].Host {
			args = append(args, filepath.Join(r.dir, "torch", f.Name))
		}
	}
	m, _ := readAll(t, inputs.Options{}, args...)
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	rank := rankOfProcess(t, m, r.nsys.Files[1].Host, r.nsys.Files[1].Processes[0].PID)
	c := m.clocks.HostClocks[rank.Clock]
	if c.Fit.Why != trace.SyncMatched || c.Fit.By != align.ByCollectives {
		t.Fatalf("ranks %v: the clock is %s", rankNames(m), c.Fit.Why)
	}
	at := int64(c.First+c.Last) / 2
	if by := float64(at-c.Fit.ToReference(at)) - r.offset(r.nsys.Files[1].Host, at); math.Abs(by) > float64(c.Fit.BoundAt(at))+2 {
		t.Errorf("it is %.0f ns off, more than %d", by, c.Fit.BoundAt(at))
	}
}
