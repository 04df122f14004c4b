package convert

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A fakeRank writes a small PyTorch trace: steps with kernels on two streams and an all-reduce
// each, launches, a copy, and a counter.
type fakeRank struct {
	rank   int
	host   string
	offset int64   // how far its clock is ahead, ns
	drift  float64 // of its clock, as a fraction
	late   int64   // how late it arrives at every collective, ns
	steps  int
	first  int64 // ns; the first step starts at 1 s + first
	comms  bool  // collectives have ids
}

const fakeBase = 1775078550_000000000

// clock returns what the rank's clock shows at true time t, in µs since base.
func (r *fakeRank) clock(t int64) string {
	local := t + r.offset + int64(r.drift*float64(t))
	return fmt.Sprintf("%d.%03d", local/1000, local%1000)
}

func (r *fakeRank) write() string {
	jitter := rand.New(rand.NewPCG(uint64(r.rank), 9))
	var b strings.Builder
	fmt.Fprintf(&b, `{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 4}, `, r.rank)
	if r.host != "" {
		fmt.Fprintf(&b, `"host_name": %q, `, r.host)
	}
	fmt.Fprintf(&b, `"baseTimeNanoseconds": %d, "traceEvents": [`, int64(fakeBase))
	event := func(format string, args ...any) { fmt.Fprintf(&b, "\n"+format+",", args...) }
	slice := func(cat, name string, pid, tid int, from, to int64, args string) {
		start, end := r.clock(from), r.clock(to)
		var us, ns, us2, ns2 int64
		fmt.Sscanf(start, "%d.%d", &us, &ns)
		fmt.Sscanf(end, "%d.%d", &us2, &ns2)
		dur := us2*1000 + ns2 - us*1000 - ns
		event(`{"ph": "X", "cat": %q, "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %d.%03d, "args": {%s}}`,
			cat, name, pid, tid, start, dur/1000, dur%1000, args)
	}
	for i := range int64(r.steps) {
		t := 1_000_000_000 + r.first + i*10_000_000
		corr := 100*i + 7
		slice("user_annotation", fmt.Sprintf("step[DECODE bs=%d]", 8+i%3), 700, 700, t, t+8_000_000, "")
		slice("cpu_op", "aten::linear", 700, 700, t+100_000, t+400_000, fmt.Sprintf(`"External id": %d`, corr))
		slice("cuda_runtime", "cudaLaunchKernel", 700, 700, t+200_000, t+250_000, fmt.Sprintf(`"cbid": 211, "correlation": %d`, corr))
		slice("cuda_runtime", "cudaGraphLaunch", 700, 700, t+260_000, t+300_000, fmt.Sprintf(`"cbid": 311, "correlation": %d`, corr+1))
		slice("kernel", "gemm", 0, 7, t+300_000, t+3_000_000+r.late, fmt.Sprintf(`"stream": 7, "correlation": %d`, corr))
		slice("kernel", "norm", 0, 7, t+3_100_000+r.late, t+3_200_000+r.late, fmt.Sprintf(`"stream": 7, "correlation": %d`, corr+1))
		slice("kernel", "rope", 0, 7, t+3_300_000+r.late, t+3_400_000+r.late, fmt.Sprintf(`"stream": 7, "correlation": %d`, corr+1))
		id := ""
		if r.comms {
			id = fmt.Sprintf(`, "Seq": %d, "Comms Id": %d`, i, 3558468448053562716+i)
		}
		end := t + 5_000_000 + int64(jitter.NormFloat64()*500)
		slice("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 0, 20, t+3_500_000+r.late, end,
			fmt.Sprintf(`"stream": 20, "correlation": %d, "Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096, `+
				`"Group size": 4, "dtype": "BFloat16", "Process Group Name": "3", "Process Group Ranks": "[0, 1, 2, 3]"%s`, corr+2, id))
		slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 24, t+350_000, t+360_000, `"stream": 24, "bytes": 64`)
		event(`{"ph": "C", "name": "memory", "pid": 700, "ts": %s, "args": {"bytes": %d}}`, r.clock(t), i)
	}
	event(`{"ph": "M", "name": "process_name", "pid": 700, "tid": 0, "args": {"name": "sglang::scheduler_TP%d"}}`, r.rank)
	event(`{"ph": "M", "name": "thread_name", "pid": 700, "tid": 700, "args": {"name": "thread 700 (python3)"}}`)
	for _, s := range []int{7, 20, 24} {
		event(`{"ph": "M", "name": "thread_name", "pid": 0, "tid": %d, "args": {"name": "stream %d "}}`, s, s)
	}
	return strings.TrimSuffix(b.String(), ",") + "\n]}\n"
}

// fakeRanks writes four ranks on two hosts into a folder, and returns the folder.
func fakeRanks(t *testing.T, change func(r *fakeRank)) (dir string) {
	dir = t.TempDir()
	for rank := range 4 {
		r := fakeRank{rank: rank, steps: 200, comms: true, host: "node0"}
		if rank >= 2 {
			r.host, r.offset, r.drift = "node1", 1_734_500, 12e-6
		}
		if rank == 1 {
			r.late = 700_000
		}
		if change != nil {
			change(&r)
		}
		name := filepath.Join(dir, fmt.Sprintf("1758600000.5-TP-%d.trace.json", rank))
		if err := os.WriteFile(name, []byte(r.write()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// merged is the contents of files on the way to a timeline.
type merged struct {
	in     *inputs.Loaded
	of     *ranks.Assignment
	clocks *clocks.Alignment
}

func (m *merged) align(given []clocks.Given, find bool) (err error) {
	m.clocks, err = clocks.Align(m.in, m.of, clocks.Options{Given: given, Find: find})
	return err
}

func (m *merged) readWindow(from, to trace.Time) error {
	return ReadWindow(m.in, m.of, m.clocks, from, to)
}

func (m *merged) layout(opt drawing.Options) *trace.Trace {
	return drawing.Draw(m.in, m.of, m.clocks, opt)
}

func readAll(t *testing.T, opt inputs.Options, args ...string) (*merged, *trace.Diags) {
	t.Helper()
	return readRanks(t, opt, ranks.Options{}, args...)
}

func readRanks(t *testing.T, opt inputs.Options, want ranks.Options, args ...string) (*merged, *trace.Diags) {
	t.Helper()
	inputs, err := inputs.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	var diags trace.Diags
	in, of, err := Read(inputs, opt, want, &diags)
	if err != nil {
		t.Fatal(err)
	}
	return &merged{in: in, of: of}, &diags
}

// readEvidence reads inputs for reports.
func readEvidence(inputs []inputs.Input, opt inputs.Options, want ranks.Options, what ReportOptions, diags *trace.Diags) (*ReportData, error) {
	opt.Walk = true
	in, of, err := Read(inputs, opt, want, diags)
	if err != nil {
		return nil, err
	}
	return ForReports(in, of, what)
}

func mergeAll(t *testing.T, args ...string) (*merged, *trace.Trace) {
	t.Helper()
	m, diags := readAll(t, inputs.Options{}, args...)
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	tr := m.layout(drawing.Options{})
	if err := trace.Validate(tr); err != nil {
		t.Fatal(err)
	}
	for _, d := range diags.All() {
		t.Log(d)
	}
	return m, tr
}

// paths returns the tracks with slices, and how many they have.
func paths(tr *trace.Trace) map[string]int {
	n := map[string]int{}
	for _, s := range tr.Slices[1:] {
		var parts []string
		for id := s.Track; id != 0; id = tr.Tracks[id].Parent {
			parts = append([]string{tr.Syms.Name(tr.Tracks[id].Name)}, parts...)
		}
		n[strings.Join(parts, " > ")]++
	}
	return n
}

func TestMergeDrawsRanks(t *testing.T) {
	_, tr := mergeAll(t, fakeRanks(t, nil))
	got := paths(tr)
	for rank := range 4 {
		name := fmt.Sprintf("TP%d", rank)
		for path, n := range map[string]int{
			"By rank > " + name + " > thread 700 (python3)":          200 * 4,
			"By rank > " + name + " > stream 7 (compute)":            200 * 3,
			"By rank > " + name + " > stream 20 (communication)":     200,
			"By rank > " + name + " > stream 24 (copy)":              200,
			"Side by side > Steps > steps · " + name:                 200,
			"Side by side > Compute > compute · " + name:             200 * 3,
			"Side by side > Communication > communication · " + name: 200,
			"Side by side > Copy > copy · " + name:                   200,
		} {
			if got[path] != n {
				t.Errorf("%s has %d slices, want %d", path, got[path], n)
			}
			delete(got, path)
		}
	}
	if len(got) > 0 {
		t.Errorf("also drawn: %v", got)
	}
	flows := map[string]int{}
	for _, f := range tr.Flows {
		flows[tr.Syms.Name(f.Name)]++
	}
	if flows["launch"] != 4*200*3 || flows["collective"] != 3*200 {
		t.Errorf("arrows: %v", flows)
	}
	samples := map[string]int{}
	for _, s := range tr.Samples {
		what, _, _ := strings.Cut(tr.Syms.Name(tr.Tracks[s.Track].Name), " · ")
		samples[what]++
	}
	if busy := samples["GPU busy"]; busy == 0 || len(tr.Samples)-busy != 4*200 {
		t.Errorf("samples: %v", samples)
	}
}

// The last arrow of a collective ends at the rank that arrived last.
func TestCollectivesEndAtTheLastToArrive(t *testing.T) {
	_, tr := mergeAll(t, fakeRanks(t, nil))
	from := map[trace.SliceID]bool{}
	for _, f := range tr.Flows {
		from[f.From] = true
	}
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) != "collective" || from[f.To] {
			continue
		}
		if name := tr.Syms.Name(tr.Tracks[tr.Slices[f.To].Track].Name); !strings.HasSuffix(name, " · TP1") {
			t.Fatalf("the last to arrive is %s, want TP1", name)
		}
	}
}

func TestMergeAlignsHosts(t *testing.T) {
	m, tr := mergeAll(t, fakeRanks(t, nil))
	clocks := m.clocks.Report(m.of).Clocks
	if len(clocks) != 2 || clocks[0].Why != "reference" || clocks[1].Why != "matched" {
		t.Fatalf("clocks: %+v", clocks)
	}
	node1 := clocks[1]
	// At true time t (since the base), the clock shows t + offset + drift*t.
	true0 := float64(node1.T0-fakeBase) / (1 + 12e-6)
	want := 1_734_500 + 12e-6*true0
	if off := float64(node1.Offset) - want; off > 500 || off < -500 {
		t.Errorf("the offset is %.0f ns off", off)
	}
	if ppb := node1.DriftPPB; ppb < 11_000 || ppb > 13_000 {
		t.Errorf("the drift is %d ppb, want 12000", ppb)
	}
	// On the common clock, steps begin at the same time on all ranks.
	starts := map[string][]trace.Time{}
	for _, s := range tr.Slices[1:] {
		parent := tr.Tracks[tr.Tracks[s.Track].Parent]
		if tr.Syms.Name(parent.Name) == "Steps" {
			name := tr.Syms.Name(tr.Tracks[s.Track].Name)
			starts[name] = append(starts[name], s.Time)
		}
	}
	for name, times := range starts {
		for i, at := range times {
			want := trace.Time(fakeBase + 1_000_000_000 + int64(i)*10_000_000)
			if off := at - want; off > 2000 || off < -2000 {
				t.Fatalf("step %d of %s begins %d ns off", i, name, off)
			}
		}
	}
}

// Without host names, the clock offsets reveal which ranks share a host.
func TestMergeFindsHosts(t *testing.T) {
	m, _ := mergeAll(t, fakeRanks(t, func(r *fakeRank) { r.host = "" }))
	clocks := m.clocks.Report(m.of).Clocks
	if len(clocks) != 2 || !slices.Equal(clocks[0].Ranks, []string{"TP0", "TP1"}) || !slices.Equal(clocks[1].Ranks, []string{"TP2", "TP3"}) {
		t.Errorf("clocks: %+v", clocks)
	}
}

func TestNoAlignLeavesClocks(t *testing.T) {
	m, _ := readAll(t, inputs.Options{}, fakeRanks(t, nil))
	if err := m.align([]clocks.Given{{Host: "node1", HasOffset: true, Offset: 1000}}, false); err != nil {
		t.Fatal(err)
	}
	if c := m.clocks.Report(m.of).Clocks[1]; c.Why != "given" || c.Offset != 1000 || c.DriftPPB != 0 {
		t.Errorf("clock: %+v", c)
	}
	if err := m.align([]clocks.Given{{Host: "nodeX"}}, false); err == nil {
		t.Error("an unknown host is accepted")
	}
}

// The order of inputs and the number of cores change nothing.
func TestMergeIsDeterministic(t *testing.T) {
	dir := fakeRanks(t, nil)
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	write := func(args []string) []byte {
		_, tr := mergeAll(t, args...)
		var b bytes.Buffer
		if err := perfetto.Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	want := write(names)
	if _, err := readback.Decode(want); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(names)
	for range 3 {
		if !bytes.Equal(write(names), want) {
			t.Fatal("another order, other bytes")
		}
	}
}

// A window read in a second pass has the events of that window in the whole, on the common clock.
func TestReadWindow(t *testing.T) {
	dir := fakeRanks(t, nil)
	from := trace.Time(fakeBase + 1_000_000_000 + 20*10_000_000 - 500_000)
	to := from + 50_000_000
	m, _ := readAll(t, inputs.Options{Filter: profile.Filter{IndexOnly: true}}, dir)
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	if err := m.readWindow(from, to); err != nil {
		t.Fatal(err)
	}
	tr := m.layout(drawing.Options{})
	if err := trace.Validate(tr); err != nil {
		t.Fatal(err)
	}
	for path, n := range paths(tr) {
		if strings.HasPrefix(path, "Side by side > Steps") && n != 5 {
			t.Errorf("%s has %d steps, want 5", path, n)
		}
	}
	collectives := 0
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) == "collective" {
			collectives++
		}
	}
	if collectives != 3*5 {
		t.Errorf("%d arrows of collectives, want 15", collectives)
	}
}

func TestRepeatedInputIsLeftOut(t *testing.T) {
	dir := fakeRanks(t, nil)
	name := filepath.Join(dir, "1758600000.5-TP-0.trace.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "copy-1758600000.5-TP-0.trace.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, diags := readAll(t, inputs.Options{}, dir)
	if len(m.of.Tracks) != 4 || !slices.ContainsFunc(diags.All(), func(d trace.Diag) bool { return d.Code == "capture-repeated" }) {
		t.Errorf("%d ranks; %v", len(m.of.Tracks), diags.All())
	}
}

// If the drift is given, the offset is still estimated.
func TestGivenDrift(t *testing.T) {
	m, _ := readAll(t, inputs.Options{}, fakeRanks(t, nil))
	if err := m.align([]clocks.Given{{Host: "node1", DriftPPB: 12_000}}, true); err != nil {
		t.Fatal(err)
	}
	c := m.clocks.Report(m.of).Clocks[1]
	want := 1_734_500 + 12e-6*float64(c.T0-fakeBase)
	if off := float64(c.Offset) - want; c.DriftPPB != 12_000 || off > 500 || off < -500 {
		t.Errorf("drift %d ppb, offset %.0f ns off", c.DriftPPB, off)
	}
}

// Collectives with ids are joined even if a given clock offset makes that impossible.
func TestGivenOffsetKeepsCollectives(t *testing.T) {
	m, _ := readAll(t, inputs.Options{}, fakeRanks(t, nil))
	if err := m.align([]clocks.Given{{Host: "node1", HasOffset: true, Offset: 9_000_000}}, true); err != nil {
		t.Fatal(err)
	}
	tr, n := m.layout(drawing.Options{}), 0
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) == "collective" {
			n++
		}
	}
	if n != 3*200 {
		t.Errorf("%d arrows of collectives, want 600", n)
	}
}

// A rank that is selected alone is drawn at the same time as among the others.
func TestWantedRankStaysInPlace(t *testing.T) {
	dir := fakeRanks(t, nil)
	_, whole := mergeAll(t, dir)
	m, _ := readRanks(t, inputs.Options{}, ranks.Options{Ranks: []naming.Want{{Rank: testset.Rank(t, "TP2")}}}, dir)
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	one := m.layout(drawing.Options{})
	if err := trace.Validate(one); err != nil {
		t.Fatal(err)
	}
	first := func(tr *trace.Trace) trace.Time {
		for _, s := range tr.Slices[1:] {
			if parent := tr.Tracks[tr.Tracks[s.Track].Parent].Name; tr.Syms.Name(parent) == "TP2" {
				return s.Time
			}
		}
		return 0
	}
	if a, b := first(whole), first(one); a != b || a == 0 {
		t.Errorf("rank TP2 begins at %d, alone at %d", a, b)
	}
	for path := range paths(one) {
		if !strings.HasSuffix(path, " · TP2") && !strings.Contains(path, "> TP2 >") {
			t.Errorf("also drawn: %s", path)
		}
	}
}
