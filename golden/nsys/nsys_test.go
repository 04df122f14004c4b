package nsys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// smallConfig is the default recording, shortened.
func smallConfig(r *simulator.Run) Config {
	c := DefaultConfig(r)
	c.Torch.To, c.Torch.Layers = c.Torch.From+150*time.Millisecond, 4
	return c
}

// check compares files with the truth.
func check(t *testing.T, files []*export) {
	t.Helper()
	for _, f := range files {
		for _, want := range f.truth.Processes {
			same(t, f.truth.Name, f.process(want), want)
		}
		same(t, f.truth.Name, f.metrics(), f.truth.Metrics)
		var messages []Message
		for _, m := range f.Messages {
			messages = append(messages, Message{Severity: int(m.Severity), Text: m.Text})
		}
		same(t, f.truth.Name, messages, f.truth.Messages)
		checkMeta(t, f)
	}
}

// same compares two values as JSON, and reports where they differ.
func same(t *testing.T, name string, got, want any) {
	t.Helper()
	a, _ := json.MarshalIndent(got, "", " ")
	b, _ := json.MarshalIndent(want, "", " ")
	if bytes.Equal(a, b) {
		return
	}
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			t.Errorf("%s: line %d is %s, truth %s", name, i, x[max(i-3, 0):i+1], y[max(i-3, 0):i+1])
			return
		}
	}
	t.Errorf("%s: %d lines, truth %d", name, len(x), len(y))
}

// checkMeta checks a file's metadata.
func checkMeta(t *testing.T, f *export) {
	t.Helper()
	m, truth := &f.Meta, f.truth
	schema, product := Schema(truth.Schema).Version()
	if m.Schema != schema || m.Product != product {
		t.Errorf("%s: schema %q of %q", truth.Name, m.Schema, m.Product)
	}
	if m.Absolute != (truth.SessionStartNs != 0) || int64(m.SessionStart) != truth.SessionStartNs || m.Shift != truth.ShiftNs {
		t.Errorf("%s: starts at %d, shifted by %d", truth.Name, m.SessionStart, m.Shift)
	}
	duration, host := truth.DurationNs, truth.Host
	if truth.Schema == int(Schema2021) {
		duration, host = -1, ""
	}
	if m.Duration != duration || m.Host != host {
		t.Errorf("%s: lasts %d ns, is of %q", truth.Name, m.Duration, m.Host)
	}
	if len(m.GPUs) != len(truth.Processes) {
		t.Errorf("%s: %d GPUs", truth.Name, len(m.GPUs))
	}
	for i := range f.Kernels {
		if i > 0 && f.Kernels[i].Start < f.Kernels[i-1].Start {
			t.Fatalf("%s: kernel %d starts before the one before it", truth.Name, i)
		}
	}
}

// TestWrite reads back all generations with all kinds of CUDA graph tracing.
func TestWrite(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) { c.DecodeDrift = -30 })
	for _, schema := range Schemas {
		for _, graphs := range []GraphTrace{"", GraphsWhole, GraphsByNode} {
			if graphs == GraphsWhole && schema == Schema2021 {
				continue
			}
			t.Run(fmt.Sprintf("%d%s", schema, graphs), func(t *testing.T) {
				c := smallConfig(r)
				c.Schema, c.OpenRanges = schema, 2
				if c.Torch.Graphs = graphs != ""; c.Torch.Graphs {
					c.GraphTrace = graphs
				}
				files := record(t, r, c)
				check(t, files)
				checkPlants(t, files, &c)
				for _, f := range files {
					checkDetails(t, f)
				}
			})
		}
	}
}

// TestShapes reads back recordings of all kinds of deployments.
func TestShapes(t *testing.T) {
	for _, test := range testinput.TraceConfigs {
		t.Run(test.Name, func(t *testing.T) {
			r := testinput.PlaySmall(t, 3, test.Change)
			c := smallConfig(r)
			test.Record(&c.Torch)
			files := record(t, r, c)
			check(t, files)
			for _, f := range files {
				checkRanges(t, f)
			}
		})
	}
}

// checkRanges checks that the closed ranges of each thread nest.
func checkRanges(t *testing.T, f *export) {
	t.Helper()
	open := map[int32][]*rows.Range{}
	for i := range f.Ranges {
		r := &f.Ranges[i]
		if r.Open {
			continue
		}
		stack := open[r.PID]
		for len(stack) > 0 && stack[len(stack)-1].End <= r.Start {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 && stack[n-1].End < r.End {
			t.Fatalf("%s: %s ends after %s, in which it begins", f.truth.Name, f.syms.Name(r.Text), f.syms.Name(stack[n-1].Text))
		}
		open[r.PID] = append(stack, r)
	}
}

// checkPlants checks that every planted effect occurs.
func checkPlants(t *testing.T, files []*export, c *Config) {
	t.Helper()
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	ids := map[uint32]int{}
	for _, f := range files {
		for _, p := range f.truth.Processes {
			runs := c.Torch.Graphs && c.GraphTrace == GraphsWhole && strings.Contains(f.truth.Host, "decode")
			nodes := c.Torch.Graphs && c.GraphTrace == GraphsByNode && strings.Contains(f.truth.Host, "decode")
			if (p.GraphRuns > 0) != runs || (p.NodeKernels > 0) != nodes || p.Open != c.OpenRanges || p.Orphans < c.Orphans {
				t.Errorf("%s: %d runs of graphs, %d nodes, %d open, %d orphans", f.truth.Name, p.GraphRuns, p.NodeKernels, p.Open, p.Orphans)
			}
			told := c.Schema >= Schema2022
			if (p.Comm != nil) != told || (p.MessageBytes != 0) != (told && !runs && !nodes) || len(p.Steps) == 0 || p.OSCalls == 0 {
				t.Errorf("%s: communicator %v, steps %v, %d calls of the system", f.truth.Name, p.Comm, p.Steps, p.OSCalls)
			}
		}
		if f.truth.Host == "decode-0" {
			for _, k := range f.API {
				ids[k.Correlation]++
			}
		}
	}
	shared := 0
	for _, n := range ids {
		if n == 4 {
			shared++
		}
	}
	if shared*2 < len(ids) {
		t.Errorf("%d of %d correlation ids are those of all processes", shared, len(ids))
	}
}

// checkDetails checks details that the truth does not count, in files of a whole recording.
func checkDetails(t *testing.T, f *export) {
	t.Helper()
	for i := range f.API {
		k := &f.API[i]
		if driver := strings.HasPrefix(f.syms.Name(k.Name), "cuL"); driver != (k.Class == rows.ClassDriver) {
			t.Fatalf("%s: %s is of the %s", f.truth.Name, f.syms.Name(k.Name), k.Class)
		}
	}
	ways := map[string]int{}
	for i := range f.Memcpys {
		k := &f.Memcpys[i]
		ways[fmt.Sprintf("%s, %s", k.Direction, k.Kind)]++
	}
	if in := ways["HtoD, Pinned -> Device"]; len(ways) != 2 || in != 3*ways["DtoH, Device -> Pinned"] {
		t.Errorf("%s: copies %v", f.truth.Name, ways)
	}
	used, most := int64(0), int64(0)
	for _, m := range f.MemoryEvents {
		used += m.Bytes
		most = max(most, used)
	}
	if used != 0 || (most > 0) != (f.truth.Host == "prefill-0") {
		t.Errorf("%s: %d bytes are not freed, of %d", f.truth.Name, used, most)
	}
	running := 0
	for _, x := range f.Scheds {
		if running++; !x.In {
			running -= 2
		}
	}
	if running != 0 || len(f.Scheds) == 0 {
		t.Errorf("%s: %d threads more run than wait", f.truth.Name, running)
	}
}

// TestGraphs compares graph launches with the kernels in them.
func TestGraphs(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) { c.DecodeDrift = 300 })
	c := smallConfig(r)
	c.Torch.Graphs = true
	launch := func(p *rows.Place) string { return fmt.Sprint(p.PID, p.Correlation) }
	nodes := map[string]*rows.GraphRun{}
	for _, f := range record(t, r, c) {
		made := map[string]bool{}
		for _, n := range f.GraphNodes {
			made[fmt.Sprint(n.PID, n.Node)] = true
		}
		for i := range f.Kernels {
			k := &f.Kernels[i]
			if k.Node == 0 {
				continue
			}
			if !made[fmt.Sprint(k.PID, k.Node)] {
				t.Fatalf("%s: nobody made node %d", f.truth.Name, k.Node)
			}
			run := nodes[launch(&k.Place)]
			if run == nil {
				run = &rows.GraphRun{Start: k.Start}
				nodes[launch(&k.Place)] = run
			}
			run.End = max(run.End, k.End)
		}
	}
	c.GraphTrace = GraphsWhole
	runs := 0
	for _, f := range record(t, r, c) {
		runs += len(f.GraphRuns)
		for i := range f.GraphRuns {
			got := &f.GraphRuns[i]
			if want := nodes[launch(&got.Place)]; want == nil || got.Start != want.Start || got.End != want.End {
				t.Fatalf("%s: graph %v, by its nodes %v", f.truth.Name, got, want)
			}
		}
	}
	if runs == 0 || runs != len(nodes) {
		t.Errorf("%d runs of graphs, by nodes %d", runs, len(nodes))
	}
}

// TestExportsAgreeWithTraces compares the kernels in exports with those in PyTorch traces, both on
// the clocks of the hosts.
func TestExportsAgreeWithTraces(t *testing.T) {
	for _, graphs := range []bool{false, true} {
		r := testinput.PlaySmall(t, 5, testinput.TwoHosts)
		c := smallConfig(r)
		c.Torch.Graphs = graphs
		files := record(t, r, c)
		for _, tr := range testinput.ReadTraces(t, r, c.Torch) {
			var want, got []string
			for _, e := range tr.OfCategory("kernel") {
				want = append(want, fmt.Sprintln(e.Start, e.End, e.Name, e.Args["device"], e.Args["stream"]))
			}
			for _, f := range files {
				if f.truth.Host != tr.Truth.Host {
					continue
				}
				for _, k := range f.Kernels {
					if int(k.PID) == tr.Truth.PID {
						got = append(got, fmt.Sprintln(int64(k.Start), int64(k.End), f.syms.Name(k.Name), k.Device, k.Stream))
					}
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if len(got) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: %d kernels, the export has %d", tr.Truth.Name, len(want), len(got))
			}
		}
	}
}

func TestPieces(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) { c.DecodeDrift = 80 })
	c := smallConfig(r)
	whole := record(t, r, c)
	c.Pieces = 3
	files := record(t, r, c)
	check(t, files)
	if len(files) != 6 || files[0].truth.Name != "prefill-0.1.sqlite" {
		t.Fatalf("%d files, the first one %s", len(files), files[0].truth.Name)
	}
	for i, host := range whole {
		kernels, cut := 0, 0
		for j, f := range files[3*i:][:3] {
			kernels += len(f.Kernels)
			for _, p := range f.truth.Processes {
				cut += p.Open
			}
			if j > 0 {
				before := files[3*i+j-1].truth
				if pause := f.truth.StartNs - before.StartNs - before.DurationNs; pause != pieceGap {
					t.Errorf("%s begins %d ns after the one before", f.truth.Name, pause)
				}
			}
		}
		if kernels >= len(host.Kernels) || kernels < len(host.Kernels)*3/4 {
			t.Errorf("%s: %d kernels in pieces, %d in one", host.truth.Host, kernels, len(host.Kernels))
		}
		if cut <= len(host.truth.Processes) {
			t.Errorf("%s: no range is cut", host.truth.Host)
		}
	}
	// Each piece is shorter than the time before the first step, so it has no step.
	c.Pieces, c.Torch.To = 10, c.Torch.From
	check(t, record(t, r, c))
}

func TestClocks(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) {})
	c := smallConfig(r)
	plain := record(t, r, c)
	c.Shift, c.Unclocked = -17*time.Second-1, []string{"decode-0"}
	c.VisibleDevices, c.ShortNames = true, true
	files := record(t, r, c)
	check(t, files)
	for i, f := range files {
		want := trace.Time(0)
		if f.truth.Host == "decode-0" {
			want = trace.Time(f.truth.StartNs)
		}
		if off := plain[i].Kernels[0].Start - f.Kernels[0].Start; off != want || f.Meta.Absolute != (want == 0) {
			t.Errorf("%s: the first kernel is off by %d", f.truth.Name, off)
		}
		if skew := plain[i].truth.ClockOffsetNs; testinput.Abs(skew-int64(r.Config.PrefillSkew)) > 1 && testinput.Abs(skew-int64(r.Config.DecodeSkew)) > 1 {
			t.Errorf("%s: clock off by %d", f.truth.Name, skew)
		}
		for _, p := range f.truth.Processes {
			if p.Device != 0 {
				t.Errorf("%s: device %d of %s", f.truth.Name, p.Device, p.Rank)
			}
		}
		for _, p := range f.Processes {
			if p.Name != "sglang::schedul" {
				t.Errorf("%s: process %q", f.truth.Name, p.Name)
			}
		}
		if p := plain[i].Processes[1]; !strings.HasSuffix(p.Name, "_TP1") {
			t.Errorf("%s: process %q", plain[i].truth.Name, p.Name)
		}
	}
}

func TestBytes(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) {})
	for _, schema := range Schemas {
		c := smallConfig(r)
		c.Schema, c.Torch.Graphs = schema, true
		write := func() []byte {
			dir := t.TempDir()
			files, err := write(filepath.Join(dir, "a.sqlite"), r, c, "decode-0")
			if err != nil || len(files) != 1 {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "a.sqlite"))
			if beside, _ := os.ReadDir(dir); err != nil || len(beside) != 1 {
				t.Fatal(err, beside)
			}
			return text
		}
		one := write()
		if !bytes.Equal(one, write()) {
			t.Errorf("%d: one configuration, two files", schema)
		}
		if !bytes.Contains(one, []byte(c.Secret)) {
			t.Errorf("%d: no secret", schema)
		}
		c.Torch.Seed++
		if bytes.Equal(one, write()) {
			t.Errorf("%d: two seeds, one file", schema)
		}
	}
}

// TestSecretIsNotRead checks that the secret is not in anything read from a file.
func TestSecretIsNotRead(t *testing.T) {
	r := testinput.PlaySmall(t, 3, func(c *simulator.Config) {})
	c := smallConfig(r)
	for _, f := range record(t, r, c) {
		text := fmt.Sprintf("%+v %+v %+v %+v", f.Meta, f.Processes, f.Threads, f.Messages)
		for i := range f.syms.Len() {
			text += f.syms.Name(trace.Sym(i))
		}
		if strings.Contains(text, c.Secret) {
			t.Errorf("%s: the secret was read", f.truth.Name)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	r := testinput.PlaySmall(t, 1, func(c *simulator.Config) {})
	for _, test := range []struct {
		want   string
		host   string
		change func(*Config)
	}{
		{"Layers", "decode-0", func(c *Config) { c.Torch.Layers = 0 }},
		{"Schema", "decode-0", func(c *Config) { c.Schema = 2020 }},
		{"GraphTrace", "decode-0", func(c *Config) { c.GraphTrace = "nodes" }},
		{"GraphTrace", "decode-0", func(c *Config) { c.Schema, c.GraphTrace = Schema2021, GraphsWhole }},
		{"Pieces", "decode-0", func(c *Config) { c.Pieces = 0 }},
		{"Shift", "decode-0", func(c *Config) { c.Schema, c.Shift = Schema2022, 1 }},
		{"OpenRanges", "decode-0", func(c *Config) { c.OpenRanges = -1 }},
		{"Orphans", "decode-0", func(c *Config) { c.Orphans = -1 }},
		{"MetricHz", "decode-0", func(c *Config) { c.MetricHz = -1 }},
		{"not a host with GPUs", "decode-0", func(c *Config) { c.Unclocked = []string{"router-0"} }},
		{"no host \"router-0\"", "router-0", func(c *Config) {}},
	} {
		c := DefaultConfig(r)
		test.change(&c)
		if _, err := write(filepath.Join(t.TempDir(), "a"), r, c, test.host); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	if _, err := write(filepath.Join(t.TempDir(), "no", "a"), r, DefaultConfig(r), "decode-0"); err == nil {
		t.Error("no error of a folder that does not exist")
	}
}

// TestShortName checks kernel names without parameters.
func TestShortName(t *testing.T) {
	var got []string
	for i := range torch.OpTable {
		if name := shortName(torch.OpTable[i].Kernel); torch.OpTable[i].GPU == torch.CatKernel && !slices.Contains(got, name) {
			got = append(got, name)
		}
	}
	want := []string{
		"FusedAddRMSNormKernel", "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel",
		"device_kernel", "nvjet_tst_64x128_64x8_1x2_h_bz_splitK_TNT", "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
		"act_and_mul_kernel", "nvjet_tst_128x64_64x8_2x1_v_bz_splitK_TNT", "nvjet_tst_192x128_64x5_1x2_h_bz_coopB_TNT",
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllGather_RING_LL", "cunn_SoftMaxForward",
		"TopKTopPSamplingFromProbKernel",
	}
	if !slices.Equal(got, want) {
		t.Errorf("kernels are called %q, want %q", got, want)
	}
}
