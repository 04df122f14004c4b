package torch_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// checkTruth counts the events that the truth counts.
func checkTruth(t *testing.T, rec *testinput.Recording) {
	for _, tr := range rec.Traces {
		checkHeader(t, rec, tr)
		counts := map[string]int{}
		first, last := int64(math.MaxInt64), int64(0)
		collectives := 0
		for _, e := range tr.TraceEvents {
			counts[e.Count()]++
			if e.Ph == "X" && e.Cat != "Trace" {
				first, last = min(first, e.Start), max(last, e.End)
			}
			if e.Cat == "kernel" && e.Args["Collective name"] != nil {
				collectives++
			}
		}
		f := tr.Truth
		for _, row := range f.Events {
			if counts[row.Name] != row.Count {
				t.Errorf("%s: %d %s, truth %d", f.Name, counts[row.Name], row.Name, row.Count)
			}
		}
		if collectives != f.Collectives {
			t.Errorf("%s: %d collectives, truth %d", f.Name, collectives, f.Collectives)
		}
		if n := testinput.CountOf(t, f.Steps, "prefill") + testinput.CountOf(t, f.Steps, "decode"); len(tr.Steps()) != n {
			t.Errorf("%s: %d steps, truth %d", f.Name, len(tr.Steps()), n)
		}
		if f.FirstNs != 0 && (testinput.Abs(tr.Host.Clock.Undo(first)-f.FirstNs) > 1 || testinput.Abs(tr.Host.Clock.Undo(last)-f.LastNs) > 1) {
			t.Errorf("%s: from %d to %d, truth from %d to %d", f.Name, first, last, f.FirstNs, f.LastNs)
		}
	}
}

// quarter is three months in ns. PyTorch counts times from the beginning of one.
const quarter = 7_889_238_000_000_000

func checkHeader(t *testing.T, rec *testinput.Recording, tr *testinput.Trace) {
	t.Helper()
	f := tr.Truth
	host := f.Host
	if !rec.Config.RecordHost {
		host = ""
	}
	if tr.SchemaVersion != 1 || tr.HostName != host || tr.DistributedInfo.Rank != f.WorldRank || len(tr.DeviceProperties) <= f.Device {
		t.Errorf("%s: schema %d, host %q, rank %d, %d devices", f.Name, tr.SchemaVersion, tr.HostName, tr.DistributedInfo.Rank, len(tr.DeviceProperties))
	}
	if tr.BaseTimeNanoseconds%quarter != 0 || tr.BaseTimeNanoseconds > f.FirstNs && f.FirstNs != 0 {
		t.Errorf("%s: base %d", f.Name, tr.BaseTimeNanoseconds)
	}
	for _, p := range rec.Run.Processes {
		if rec.Run.Hosts[p.Host].Name == f.Host && p.PID == f.PID && p.Rank.String() != f.Rank {
			t.Errorf("%s: pid %d is rank %s", f.Name, f.PID, p.Rank)
		}
	}
	last := tr.TraceEvents[len(tr.TraceEvents)-1]
	if last.Name != "Record Window End" || !strings.HasPrefix(tr.TraceName, "/") {
		t.Errorf("%s: ends with %q, trace name %q", f.Name, last.Name, tr.TraceName)
	}
}

// checkNesting checks that the slices of a thread nest, and that the kernels and copies of a stream
// do not overlap. Copies do not even touch.
func checkNesting(t *testing.T, rec *testinput.Recording) {
	for _, tr := range rec.Traces {
		rows := map[string][]*testinput.Event{}
		for _, e := range tr.TraceEvents {
			if e.Ph != "X" || e.Cat == "Trace" {
				continue
			}
			row := e.Row()
			if e.Cat == "gpu_user_annotation" {
				row += " annotations"
			}
			if e.End <= e.Start {
				t.Fatalf("%s: %s %q takes %d ns", tr.Truth.Name, e.Cat, e.Name, e.End-e.Start)
			}
			rows[row] = append(rows[row], e)
		}
		for row, events := range rows {
			if err := checkRow(events); err != "" {
				t.Fatalf("%s: row %s: %s", tr.Truth.Name, row, err)
			}
		}
	}
}

// checkRow describes what is wrong with the slices of a row, or returns "".
func checkRow(events []*testinput.Event) string {
	slices.SortStableFunc(events, func(a, b *testinput.Event) int {
		if a.Start != b.Start {
			return int(min(max(a.Start-b.Start, -1), 1))
		}
		return int(min(max(b.End-a.End, -1), 1))
	})
	var open []*testinput.Event
	for _, e := range events {
		for len(open) > 0 && open[len(open)-1].End <= e.Start {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			above := open[n-1]
			if e.End > above.End || e.Cat == "kernel" || e.Cat == "gpu_memcpy" {
				return above.Name + " overlaps " + e.Name
			}
		}
		open = append(open, e)
	}
	return ""
}

// checkLaunches checks that all GPU work was launched earlier, by a call with an arrow to it, from
// the operator that it names.
func checkLaunches(t *testing.T, rec *testinput.Recording) {
	for _, tr := range rec.Traces {
		calls, starts, ends := map[int]*testinput.Event{}, map[int]int{}, map[int]int{}
		operators := map[int]*testinput.Event{}
		for _, e := range tr.TraceEvents {
			switch {
			case e.Ph == "s":
				starts[e.ID]++
			case e.Ph == "f":
				ends[e.ID]++
			case e.Cat == "cuda_runtime", e.Cat == "cuda_driver":
				calls[e.Number("correlation")] = e
			case e.Cat == "cpu_op":
				operators[e.Number("External id")] = e
			}
		}
		graph, least := 0, int64(math.MaxInt64)
		for _, e := range append(tr.OfCategory("kernel"), tr.OfCategory("gpu_memcpy")...) {
			id := e.Number("correlation")
			call := calls[id]
			if call == nil || starts[id] != 1 || ends[id] == 0 {
				t.Fatalf("%s: %q has no launch, or arrows %d and %d", tr.Truth.Name, e.Name, starts[id], ends[id])
			}
			least = min(least, e.Start-call.Start)
			if call.Name == "cudaGraphLaunch" {
				graph++
				if e.Args["Collective name"] != nil || e.Args["External id"] != nil {
					t.Fatalf("%s: %q has metadata inside a graph", tr.Truth.Name, e.Name)
				}
				continue
			}
			op := operators[e.Number("External id")]
			if op == nil || op.Start > call.Start || op.End < call.End || call.Number("External id") != e.Number("External id") {
				t.Fatalf("%s: %q is not of the operator that launches it", tr.Truth.Name, e.Name)
			}
		}
		if least < 2000 || least > 10_100 && least != math.MaxInt64 {
			t.Errorf("%s: a kernel starts %d ns after its launch", tr.Truth.Name, least)
		}
		if f := tr.Truth; rec.Config.Graphs && (graph == 0) != (testinput.CountOf(t, f.Steps, "decode") == 0) {
			t.Errorf("%s: %d kernels in graphs", f.Name, graph)
		}
		stray := 0
		for id := range ends {
			if starts[id] == 0 {
				stray++
			}
		}
		if (stray == 0) != (least == math.MaxInt64) {
			t.Errorf("%s: %d ends of arrows without start", tr.Truth.Name, stray)
		}
	}
}

func TestSeedDecidesTheInside(t *testing.T) {
	r := testinput.PlaySmall(t, 1, func(c *simulator.Config) {})
	c := torch.DefaultConfig(r)
	c.To = c.From + 100*time.Millisecond
	write := func(seed uint64) []byte {
		var b bytes.Buffer
		c.Seed = seed
		if _, err := torch.Write(&b, r, c, 2); err != nil {
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

func TestConfigIsChecked(t *testing.T) {
	r := testinput.PlaySmall(t, 1, func(c *simulator.Config) {})
	for _, test := range []struct {
		want   string
		change func(*torch.Config)
		rank   int
	}{
		{"To", func(c *torch.Config) { c.To = c.From - 1 }, 0},
		{"Ragged", func(c *torch.Config) { c.Ragged = -1 }, 0},
		{"Layers", func(c *torch.Config) { c.Layers = 0 }, 0},
		{"Stacks", func(c *torch.Config) { c.Stacks = 65 }, 0},
		{"EndJitter", func(c *torch.Config) { c.EndJitter = time.Millisecond }, 0},
		{"no scheduler 6", func(c *torch.Config) {}, 6},
	} {
		c := torch.DefaultConfig(r)
		test.change(&c)
		if _, err := torch.Write(io.Discard, r, c, test.rank); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	if _, err := torch.Write(&testinput.BrokenWriter{Left: 200_000}, r, torch.DefaultConfig(r), 0); !errors.Is(err, testinput.ErrBroken) {
		t.Errorf("error %v of a broken writer", err)
	}
}

// BenchmarkWrite writes a trace of realistic size.
func BenchmarkWrite(b *testing.B) {
	config := simulator.DefaultConfig(1)
	config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 8, PP: 1, DP: 1}
	r, err := simulator.Play(config)
	if err != nil {
		b.Fatal(err)
	}
	c := torch.DefaultConfig(r)
	c.Layers, c.Stacks = 80, 6
	for b.Loop() {
		var n counter
		if _, err := torch.Write(&n, r, c, 1); err != nil {
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

func TestWrite(t *testing.T) {
	for _, test := range testinput.TraceConfigs {
		t.Run(test.Name, func(t *testing.T) {
			r := testinput.PlaySmall(t, 3, test.Change)
			c := torch.DefaultConfig(r)
			c.To, c.Layers = c.From+250*time.Millisecond, 4
			test.Record(&c)
			rec := &testinput.Recording{Run: r, Config: c, Traces: testinput.ReadTraces(t, r, c)}
			kernels := 0
			for _, tr := range rec.Traces {
				kernels += len(tr.OfCategory("kernel"))
			}
			if (kernels == 0) != (c.From == c.To) {
				t.Errorf("%d kernels", kernels)
			}
			for _, check := range []struct {
				name string
				run  func(*testing.T, *testinput.Recording)
			}{
				{"truth", checkTruth}, {"nesting", checkNesting},
				{"launches", checkLaunches}, {"collectives", checkCollectives},
			} {
				t.Run(check.name, func(t *testing.T) { check.run(t, rec) })
			}
		})
	}
}
