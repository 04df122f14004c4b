package golden

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// checkTorchTruth counts what truth has counted.
func checkTorchTruth(t *testing.T, rec *recording) {
	for _, tr := range rec.traces {
		checkHeader(t, rec, tr)
		counts := map[string]int{}
		first, last := int64(math.MaxInt64), int64(0)
		collectives := 0
		for _, e := range tr.TraceEvents {
			counts[e.count()]++
			if e.Ph == "X" && e.Cat != "Trace" {
				first, last = min(first, e.start), max(last, e.end)
			}
			if e.Cat == "kernel" && e.Args["Collective name"] != nil {
				collectives++
			}
		}
		f := tr.truth
		for _, row := range f.Events {
			if counts[row.Name] != row.Count {
				t.Errorf("%s: %d %s, truth %d", f.Name, counts[row.Name], row.Name, row.Count)
			}
		}
		if collectives != f.Collectives {
			t.Errorf("%s: %d collectives, truth %d", f.Name, collectives, f.Collectives)
		}
		if n := countOf(t, f.Steps, "prefill") + countOf(t, f.Steps, "decode"); len(tr.steps()) != n {
			t.Errorf("%s: %d steps, truth %d", f.Name, len(tr.steps()), n)
		}
		if f.FirstNs != 0 && (abs(tr.host.clock.undo(first)-f.FirstNs) > 1 || abs(tr.host.clock.undo(last)-f.LastNs) > 1) {
			t.Errorf("%s: from %d to %d, truth from %d to %d", f.Name, first, last, f.FirstNs, f.LastNs)
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// quarter is three months in nanoseconds. PyTorch counts from the beginning of one.
const quarter = 7_889_238_000_000_000

func checkHeader(t *testing.T, rec *recording, tr *torchTrace) {
	t.Helper()
	f := tr.truth
	host := f.Host
	if !rec.config.RecordHost {
		host = ""
	}
	if tr.SchemaVersion != 1 || tr.HostName != host || tr.DistributedInfo.Rank != f.WorldRank || len(tr.DeviceProperties) <= f.Device {
		t.Errorf("%s: schema %d, host %q, rank %d, %d devices", f.Name, tr.SchemaVersion, tr.HostName, tr.DistributedInfo.Rank, len(tr.DeviceProperties))
	}
	if tr.BaseTimeNanoseconds%quarter != 0 || tr.BaseTimeNanoseconds > f.FirstNs && f.FirstNs != 0 {
		t.Errorf("%s: base %d", f.Name, tr.BaseTimeNanoseconds)
	}
	for _, p := range rec.run.processes {
		if rec.run.hosts[p.host].name == f.Host && p.pid == f.PID && p.rank.String() != f.Rank {
			t.Errorf("%s: pid %d is rank %s", f.Name, f.PID, p.rank)
		}
	}
	last := tr.TraceEvents[len(tr.TraceEvents)-1]
	if last.Name != "Record Window End" || !strings.HasPrefix(tr.TraceName, "/") {
		t.Errorf("%s: ends with %q, trace name %q", f.Name, last.Name, tr.TraceName)
	}
}

// checkTorchNesting checks that the slices of a thread nest, and that the kernels of
// a stream and the copies, which do not even touch, come one after the other.
func checkTorchNesting(t *testing.T, rec *recording) {
	for _, tr := range rec.traces {
		rows := map[string][]*torchEvent{}
		for _, e := range tr.TraceEvents {
			if e.Ph != "X" || e.Cat == "Trace" {
				continue
			}
			row := e.row()
			if e.Cat == "gpu_user_annotation" {
				row += " annotations"
			}
			if e.end <= e.start {
				t.Fatalf("%s: %s %q takes %d ns", tr.truth.Name, e.Cat, e.Name, e.end-e.start)
			}
			rows[row] = append(rows[row], e)
		}
		for row, events := range rows {
			if err := checkNesting(events); err != "" {
				t.Fatalf("%s: row %s: %s", tr.truth.Name, row, err)
			}
		}
	}
}

// checkNesting returns what is wrong with the slices of a row.
func checkNesting(events []*torchEvent) string {
	slices.SortStableFunc(events, func(a, b *torchEvent) int {
		if a.start != b.start {
			return int(min(max(a.start-b.start, -1), 1))
		}
		return int(min(max(b.end-a.end, -1), 1))
	})
	var open []*torchEvent
	for _, e := range events {
		for len(open) > 0 && open[len(open)-1].end <= e.start {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			above := open[n-1]
			if e.end > above.end || e.Cat == "kernel" || e.Cat == "gpu_memcpy" {
				return above.Name + " overlaps " + e.Name
			}
		}
		open = append(open, e)
	}
	return ""
}

// checkLaunches checks that everything on the GPU was launched before, by a call
// with an arrow to it, from the operator that it names.
func checkLaunches(t *testing.T, rec *recording) {
	for _, tr := range rec.traces {
		calls, starts, ends := map[int]*torchEvent{}, map[int]int{}, map[int]int{}
		operators := map[int]*torchEvent{}
		for _, e := range tr.TraceEvents {
			switch {
			case e.Ph == "s":
				starts[e.ID]++
			case e.Ph == "f":
				ends[e.ID]++
			case e.Cat == "cuda_runtime", e.Cat == "cuda_driver":
				calls[e.number("correlation")] = e
			case e.Cat == "cpu_op":
				operators[e.number("External id")] = e
			}
		}
		graph, least := 0, int64(math.MaxInt64)
		for _, e := range append(tr.ofCategory("kernel"), tr.ofCategory("gpu_memcpy")...) {
			id := e.number("correlation")
			call := calls[id]
			if call == nil || starts[id] != 1 || ends[id] == 0 {
				t.Fatalf("%s: %q has no launch, or arrows %d and %d", tr.truth.Name, e.Name, starts[id], ends[id])
			}
			least = min(least, e.start-call.start)
			if call.Name == "cudaGraphLaunch" {
				graph++
				if e.Args["Collective name"] != nil || e.Args["External id"] != nil {
					t.Fatalf("%s: %q has metadata inside a graph", tr.truth.Name, e.Name)
				}
				continue
			}
			op := operators[e.number("External id")]
			if op == nil || op.start > call.start || op.end < call.end || call.number("External id") != e.number("External id") {
				t.Fatalf("%s: %q is not of the operator that launches it", tr.truth.Name, e.Name)
			}
		}
		if least < 2000 || least > 10_100 && least != math.MaxInt64 {
			t.Errorf("%s: a kernel starts %d ns after its launch", tr.truth.Name, least)
		}
		if f := tr.truth; rec.config.Graphs && (graph == 0) != (countOf(t, f.Steps, "decode") == 0) {
			t.Errorf("%s: %d kernels in graphs", f.Name, graph)
		}
		stray := 0
		for id := range ends {
			if starts[id] == 0 {
				stray++
			}
		}
		if (stray == 0) != (least == math.MaxInt64) {
			t.Errorf("%s: %d ends of arrows without start", tr.truth.Name, stray)
		}
	}
}

var torchName = regexp.MustCompile(`^((prefill|decode)-)?\d{10}\.\d{7}-TP-(\d+)(-DP-(\d+))?(-PP-(\d+))?\.trace\.json(\.gz)?$`)

func TestWriteTorchDir(t *testing.T) {
	r := simulate(t, 1, func(c *Config) { c.RanksPerHost, c.HostSkew = 2, time.Millisecond })
	c := DefaultTorchConfig(r)
	c.To = c.From + 100*time.Millisecond
	dir := filepath.Join(t.TempDir(), "a")
	if err := WriteRecordedDir(dir, r, &c, nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteRecordedDir(filepath.Join(dir, "plain"), r, nil, nil); err != nil {
		t.Fatal(err)
	}
	truth := readTruth(t, dir)
	if readTruth(t, filepath.Join(dir, "plain")).Torch != nil || len(truth.Torch.Files) != schedulers(r) || len(truth.Torch.Groups) != 3 {
		t.Errorf("truth has %d files and %d groups", len(truth.Torch.Files), len(truth.Torch.Groups))
	}
	for i, f := range truth.Torch.Files {
		parts := torchName.FindStringSubmatch(f.Name)
		if parts == nil || !strings.HasPrefix(f.Rank, "TP"+parts[3]+"-") || parts[5] != "" && !strings.HasSuffix(f.Rank, "-DP"+parts[5]) {
			t.Errorf("%s is the name for %s", f.Name, f.Rank)
		}
		file, err := os.Open(filepath.Join(dir, "torch", f.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		z, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if _, err := WriteTorch(&want, r, c, i); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what WriteTorch writes (%v)", f.Name, err)
		}
	}
}

func TestTorchSeedDecidesTheInside(t *testing.T) {
	r := simulateSmall(t, 1, func(c *Config) {})
	c := DefaultTorchConfig(r)
	c.To = c.From + 100*time.Millisecond
	write := func(seed uint64) []byte {
		var b bytes.Buffer
		c.Seed = seed
		if _, err := WriteTorch(&b, r, c, 2); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(write(1), write(1)) {
		t.Error("one seed, two traces")
	}
	if bytes.Equal(write(1), write(2)) {
		t.Error("two seeds, one trace")
	}
}

func TestTorchConfigIsChecked(t *testing.T) {
	r := simulateSmall(t, 1, func(c *Config) {})
	for _, test := range []struct {
		want   string
		change func(*TorchConfig)
		rank   int
	}{
		{"To", func(c *TorchConfig) { c.To = c.From - 1 }, 0},
		{"Ragged", func(c *TorchConfig) { c.Ragged = -1 }, 0},
		{"Layers", func(c *TorchConfig) { c.Layers = 0 }, 0},
		{"Stacks", func(c *TorchConfig) { c.Stacks = 65 }, 0},
		{"EndJitter", func(c *TorchConfig) { c.EndJitter = time.Millisecond }, 0},
		{"no scheduler 6", func(c *TorchConfig) {}, 6},
	} {
		c := DefaultTorchConfig(r)
		test.change(&c)
		if _, err := WriteTorch(io.Discard, r, c, test.rank); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	if _, err := WriteTorch(&brokenWriter{200_000}, r, DefaultTorchConfig(r), 0); !errors.Is(err, errBroken) {
		t.Errorf("error %v of a broken writer", err)
	}
}

// BenchmarkWriteTorch writes a trace as large as real ones are.
func BenchmarkWriteTorch(b *testing.B) {
	config := DefaultConfig(1)
	config.Mode, config.Unified = Unified, Parallel{TP: 8, PP: 1, DP: 1}
	r, err := Simulate(config)
	if err != nil {
		b.Fatal(err)
	}
	c := DefaultTorchConfig(r)
	c.Layers, c.Stacks = 80, 6
	for b.Loop() {
		var n counter
		if _, err := WriteTorch(&n, r, c, 1); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(n))
	}
}

// counter is a writer that counts bytes.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}
