package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// recorded is a simulated run recorded by several profilers.
type recorded struct {
	dir   string
	truth *golden.Truth
	torch *torch.Truth
	nsys  *nsys.Truth
}

// record simulates a unified server of four ranks on two hosts; the second host's clock is ahead.
func record(t *testing.T, seed uint64, change func(n *nsys.Config)) recorded {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Mode, config.Unified, config.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 1}, 2
	config.Requests, config.HostSkew, config.HostDrift = 60, 3*time.Millisecond, 11
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	n := nsys.DefaultConfig(run)
	n.Torch.Seed, n.Torch.Stacks, n.Torch.Gzip, n.Torch.Shapes, n.Torch.Layers = seed, 0, false, false, 4
	if change != nil {
		change(&n)
	}
	r := recorded{dir: t.TempDir(), truth: new(golden.Truth)}
	if err := golden.WriteDir(r.dir, run, &n.Torch, &n); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.dir, "truth.json"))
	if err == nil {
		err = json.Unmarshal(data, r.truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.torch, r.nsys = r.truth.Torch, r.truth.Nsys
	return r
}

func (r *recorded) exports() string { return filepath.Join(r.dir, "nsys", "*.sqlite") }
func (r *recorded) traces() string  { return filepath.Join(r.dir, "torch", "*.json") }

// offset returns how far the clock of a host is ahead of the first host's at a time.
func (r *recorded) offset(host string, at int64) float64 {
	show := func(h *simulator.HostTruth) float64 {
		return float64(h.SkewNs) + h.DriftPPM*float64(at-r.truth.StartNs)/1e6
	}
	var first, other *simulator.HostTruth
	for i := range r.truth.Hosts {
		h := &r.truth.Hosts[i]
		if h.Name == r.nsys.Files[0].Host {
			first = h
		}
		if h.Name == host {
			other = h
		}
	}
	return show(other) - show(first)
}

// drawnOn counts the slices on tracks of a rank whose path contains a text.
func drawnOn(tr *trace.Trace, rank, text string) (n int) {
	for path, count := range paths(tr) {
		if strings.HasPrefix(path, "By rank > "+rank+" > ") && strings.Contains(path, text) {
			n += count
		}
	}
	return n
}

// rankOfProcess finds the rank of a process.
func rankOfProcess(t *testing.T, m *merged, host string, pid int) *ranks.Track {
	t.Helper()
	var found *ranks.Track
	for _, r := range m.of.Tracks {
		if r.PID != int64(pid) || r.Host != host && r.Host != "" {
			continue
		}
		if found != nil {
			t.Fatalf("process %d of %s is both %s and %s", pid, host, found.Name, r.Name)
		}
		found = r
	}
	if found == nil {
		t.Fatalf("process %d of %s is no rank of %v", pid, host, rankNames(m))
	}
	return found
}

// Ranks are recovered from any data an export has, in all generations of the schema.
func TestNsysRanksOfSimulatedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *nsys.Config)
		notice string // how ranks were counted; "" if no notice
		hosts  int    // number of hosts whose exports are merged
		names  string // expected names of the ranks
	}{
		"names of processes":           {func(*nsys.Config) {}, "", 2, "TP0 TP1 TP2 TP3"},
		"names of processes of 2021":   {func(n *nsys.Config) { n.Schema = nsys.Schema2021 }, "", 2, "TP0 TP1 TP2 TP3"},
		"payloads":                     {func(n *nsys.Config) { n.ShortNames = true }, "", 2, "rank 0 rank 1 rank 2 rank 3"},
		"payloads as JSON":             {func(n *nsys.Config) { n.ShortNames, n.Schema = true, nsys.Schema2022 }, "", 2, "rank 0 rank 1 rank 2 rank 3"},
		"payloads in the first piece":  {func(n *nsys.Config) { n.ShortNames, n.Pieces = true, 3 }, "", 2, "rank 0 rank 1 rank 2 rank 3"},
		"devices":                      {func(n *nsys.Config) { n.ShortNames, n.Payloads = true, false }, "rank-by-gpu", 1, "rank 0 rank 1"},
		"devices that each calls 0":    {func(n *nsys.Config) { n.ShortNames, n.Payloads, n.VisibleDevices = true, false, true }, "rank-by-gpu", 1, "rank 0 rank 1"},
		"nothing but pids":             {func(n *nsys.Config) { n.ShortNames, n.Payloads, n.Schema = true, false, nsys.Schema2024 }, "rank-by-pid", 1, "rank 0 rank 1"},
		"nothing of two hosts at once": {func(n *nsys.Config) { n.ShortNames, n.Payloads = true, false }, "rank-unknown", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, 3, c.change)
			path := r.exports()
			if c.hosts == 1 {
				path = filepath.Join(r.dir, "nsys", r.nsys.Files[0].Name)
			}
			m, diags := readAll(t, inputs.Options{}, path)
			var names []string
			for _, rank := range m.of.Tracks {
				if rank.Rank != trace.NoRank {
					names = append(names, rank.Rank.String())
				}
			}
			if got := strings.Join(names, " "); got != c.names {
				t.Errorf("ranks are %q, want %q; all are %v", got, c.names, rankNames(m))
			}
			notices := ""
			for _, d := range diags.All() {
				if strings.HasPrefix(d.Code, "rank-") {
					notices = d.Code
				}
			}
			if notices != c.notice {
				t.Errorf("the notice is %q, want %q; %v", notices, c.notice, diags.All())
			}
			for _, f := range r.nsys.Files[:c.hosts] {
				for i := range f.Processes {
					p := &f.Processes[i]
					if f.Schema == int(nsys.Schema2021) {
						continue // the export does not tell which host this is
					}
					rank := rankOfProcess(t, m, f.Host, p.PID)
					var tp int
					fmt.Sscanf(p.Rank, "TP%d", &tp)
					if got := rank.Global(); c.names != "" && got != int32(tp) {
						t.Errorf("process %d of %s is rank %d, want %d", p.PID, f.Host, got, tp)
					}
				}
			}
		})
	}
}

// A rank given by the user for a process takes precedence.
func TestGivenRanksOfProcesses(t *testing.T) {
	r := record(t, 3, nil)
	first, second := &r.nsys.Files[0], &r.nsys.Files[1]
	given := func(host string, pid int, rank string) ranks.GivenRank {
		parsed, _ := trace.ParseRank(rank)
		return ranks.GivenRank{Host: host, PID: int64(pid), Rank: parsed}
	}
	m, _ := readRanks(t, inputs.Options{}, ranks.Options{Given: []ranks.GivenRank{
		given(first.Host, first.Processes[0].PID, "TP7"), given(second.Host, second.Processes[0].PID, "TP5"),
	}}, r.exports())
	if got := rankNames(m); !slices.Contains(got, "TP7") || !slices.Contains(got, "TP5") {
		t.Errorf("ranks are %v", got)
	}
	files, _ := inputs.Find([]string{r.exports()})
	for _, bad := range []ranks.GivenRank{given("", 1, "TP0"), given("elsewhere", first.Processes[0].PID, "TP0")} {
		if _, _, err := Read(files, inputs.Options{}, ranks.Options{Given: []ranks.GivenRank{bad}}, &trace.Diags{}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	for text, want := range map[string]string{
		"4100=TP3": "4100 TP3", "pid3=7": "3 rank 7", "node-a:4100=TP1-DP2": "node-a:4100 DP2 TP1", "4100": "", "x=TP1": "", "4100=node": "", "0=TP1": "",
	} {
		g, err := ranks.ParseGivenRank(text)
		got := ""
		if err == nil {
			got = strings.TrimPrefix(fmt.Sprintf("%s:%d %s", g.Host, g.PID, g.Rank), ":")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Exports of two hosts are aligned by the collectives that their ranks share; those inside graphs
// are matched by order. The same holds together with PyTorch traces and requests.
func TestNsysClocksOfSimulatedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *nsys.Config)
		with   string
		widest int64
	}{
		"payloads":                    {func(*nsys.Config) {}, "", 5000},
		"the first steps of few":      {func(n *nsys.Config) { n.Torch.Ragged = 2 }, "", 5000},
		"no payloads":                 {func(n *nsys.Config) { n.Payloads = false }, "", 5000},
		"graphs":                      {func(n *nsys.Config) { n.Torch.Graphs, n.Torch.Ragged = true, 2 }, "", 5000},
		"2022":                        {func(n *nsys.Config) { n.Schema = nsys.Schema2022 }, "", 5000},
		"no start of the session":     {func(n *nsys.Config) { n.Unclocked = []string{"unified-1"} }, "", 5000},
		"no start, but PyTorch's too": {func(n *nsys.Config) { n.Unclocked = []string{"unified-0", "unified-1"} }, "torch", 5000},
		"with requests":               {func(*nsys.Config) {}, "otel", 5000},
		"no names, payloads":          {func(n *nsys.Config) { n.ShortNames = true }, "", 5000},
		"no names, no payloads":       {func(n *nsys.Config) { n.ShortNames, n.Payloads = true, false }, "", 5000},
		"nothing at all": {func(n *nsys.Config) {
			n.ShortNames, n.Payloads, n.Torch.Graphs, n.Schema = true, false, true, nsys.Schema2022
		}, "", 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, 5, c.change)
			args := []string{r.exports()}
			switch c.with {
			case "torch":
				args = append(args, r.traces())
			case "otel":
				args = append(args, filepath.Join(r.dir, "otel.jsonl"))
			}
			m, _ := readAll(t, inputs.Options{}, args...)
			if err := m.align(nil, true); err != nil {
				t.Fatal(err)
			}
			for _, l := range m.clocks.Report(m.of).Clocks {
				t.Log(l.String())
			}
			for _, f := range r.nsys.Files {
				for i := range f.Processes {
					rank := rankOfProcess(t, m, f.Host, f.Processes[i].PID)
					fit := &m.clocks.HostClocks[rank.Clock].Fit
					local := (m.clocks.HostClocks[rank.Clock].First + m.clocks.HostClocks[rank.Clock].Last) / 2
					if m.clocks.Reference == rank.Clock {
						continue
					}
					host := int64(local) // what the host's clock showed then
					if m.clocks.HostClocks[rank.Clock].Domain != "unix" {
						host += f.StartNs
					}
					if fit.Why != trace.SyncMatched || fit.Bound > c.widest {
						t.Fatalf("the clock of %s is %s within %d", rank.Name, fit.Why, fit.Bound)
					}
					want := host - int64(r.offset(f.Host, host))
					if by := fit.ToReference(int64(local)) - want; max(by, -by) > fit.BoundAt(int64(local))+2 {
						t.Errorf("the clock of %s is %d ns off, more than %d", rank.Name, by, fit.BoundAt(int64(local)))
					}
				}
			}
		})
	}
}

// A process recorded by both PyTorch's profiler and Nsight Systems is one rank, in which every
// event is drawn once.
func TestDuplicatesOfSimulatedRuns(t *testing.T) {
	for name, change := range map[string]func(n *nsys.Config){
		"one clock":             func(*nsys.Config) {},
		"no start":              func(n *nsys.Config) { n.Unclocked = []string{"unified-0", "unified-1"} },
		"no names":              func(n *nsys.Config) { n.ShortNames, n.Payloads = true, false },
		"graphs, by node":       func(n *nsys.Config) { n.Torch.Graphs = true },
		"graphs, as a whole":    func(n *nsys.Config) { n.Torch.Graphs, n.GraphTrace = true, nsys.GraphsWhole },
		"three sessions":        func(n *nsys.Config) { n.Pieces = 3 },
		"three without a start": func(n *nsys.Config) { n.Pieces, n.Unclocked = 3, []string{"unified-0", "unified-1"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, 7, change)
			m, tr := mergeAll(t, r.exports(), r.traces())
			for i := range r.torch.Files {
				f := &r.torch.Files[i]
				rank := rankOfProcess(t, m, f.Host, f.PID)
				want := r.streamEvents(f)
				if got := drawnOn(tr, rank.Name, "stream "); got != want {
					t.Errorf("%s has %d slices on streams, want %d", rank.Name, got, want)
				}
				if drawnOn(tr, rank.Name, "NVTX") == 0 {
					t.Errorf("%s has no ranges of NVTX", rank.Name)
				}
			}
			if n := len(m.of.Tracks); n > len(r.torch.Files)+len(r.nsys.Files) { // plus a machine for each export
				t.Errorf("there are ranks %v", rankNames(m))
			}
		})
	}
}

// streamEvents returns the number of kernels, copies, and GPU annotations of a process, from any
// profiler.
func (r *recorded) streamEvents(f *torch.FileTruth) (n int) {
	for _, e := range f.Events {
		if slices.Contains(profile.WorkCategories, e.Name) || e.Name == "gpu_user_annotation" {
			n += e.Count
		}
	}
	return n
}

// The same inputs give the same bytes, whatever their order and the number of cores.
func TestNsysSameBytes(t *testing.T) {
	r := record(t, 11, func(n *nsys.Config) { n.Pieces, n.Torch.Graphs = 2, true })
	draw := func(args ...string) []byte {
		m, _ := readAll(t, inputs.Options{}, args...)
		if err := m.align(nil, true); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := perfetto.Write(&out, m.layout(drawing.Options{})); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	otel := filepath.Join(r.dir, "otel.jsonl")
	want := draw(r.exports(), r.traces(), otel)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for cores := 1; cores <= 3; cores++ {
		runtime.GOMAXPROCS(cores)
		if !bytes.Equal(want, draw(otel, r.traces(), r.exports())) {
			t.Errorf("with %d cores and another order of arguments, the output differs", cores)
		}
	}
}

// Only allowed data of an export reaches an output: no environment, command lines, or program
// output.
func TestNsysSecretsStayInside(t *testing.T) {
	for _, schema := range nsys.Schemas {
		r := record(t, 13, func(n *nsys.Config) { n.Schema = schema })
		m, diags := readAll(t, inputs.Options{}, r.exports(), r.traces())
		if err := m.align(nil, true); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := perfetto.Write(&out, m.layout(drawing.Options{})); err != nil {
			t.Fatal(err)
		}
		if r.nsys.Secret == "" || bytes.Contains(out.Bytes(), []byte(r.nsys.Secret)) {
			t.Errorf("schema of %d: the secret is in the output", schema)
		}
		for _, d := range diags.All() {
			if strings.Contains(d.String(), r.nsys.Secret) {
				t.Errorf("schema of %d: the secret is in a message: %s", schema, d)
			}
		}
	}
}

// Two servers on one host are distinguished by their communicators if nothing else distinguishes
// them.
func TestCommunicatorsOfTwoServers(t *testing.T) {
	config := simulator.DefaultConfig(17)
	config.Mode, config.Unified, config.Requests = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 2}, 60
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	n := nsys.DefaultConfig(run)
	n.ShortNames = true
	dir := t.TempDir()
	if _, err := nsys.WriteDir(dir, run, n); err != nil {
		t.Fatal(err)
	}
	m, _ := readAll(t, inputs.Options{}, filepath.Join(dir, "nsys", "*.sqlite"))
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	jobs := map[int][]int32{}
	for i, job := range m.of.Jobs() {
		if r := m.of.Tracks[i]; r.Rank != trace.NoRank {
			jobs[job] = append(jobs[job], r.Global())
		}
	}
	if len(jobs) != 2 {
		t.Fatalf("the ranks are of jobs %v", jobs)
	}
	for _, ranks := range jobs {
		if slices.Sort(ranks); !slices.Equal(ranks, []int32{0, 1}) {
			t.Errorf("the ranks are of jobs %v", jobs)
		}
	}
	if m.clocks.Matches.Len() == 0 {
		t.Error("no collectives are matched")
	}
}
