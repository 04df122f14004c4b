package gpu

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// An htaEvent is an event as Holistic Trace Analysis loads it, through a reader that shares
// nothing with the one under test. Times are ns since the earliest event of all ranks.
type htaEvent struct {
	cat, name   string
	start, end  int64
	stream      int64 // -1 is none: a host event
	correlation int64 // 0 is none
	tid         int64
}

func (e *htaEvent) onGPU() bool { return e.stream >= 0 }

// htaRun is the description of the run behind an oracle, in run.json.
type htaRun struct {
	Files map[string]string // by rank
	Env   map[string]string
}

// rounds reports whether times were rounded to us: starts up, ends down.
func (r *htaRun) rounds() bool { return r.Env["HTA_DISABLE_NS_ROUNDING"] != "1" }

// htaInputs are the paths of an oracle's inputs. The folder's former name is part of its present name.
func (r *htaRun) inputs(t *testing.T) []string {
	var paths []string
	for i := range len(r.Files) {
		name := r.Files[strconv.Itoa(i)]
		if name == "trace_filter/sampled_rank-0.json.gz" {
			name = "timeline_analysis/sampled_rank-0.json.gz" // the same content
		}
		all := filepath.Dir(testinput.Shared(t, "data/torch/real", "hta+*triton*"))
		found, err := filepath.Glob(filepath.Join(all, "*"+strings.ReplaceAll(strings.TrimPrefix(name, "tracelens/"), "/", "__")))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		paths = append(paths, found[0])
	}
	return paths
}

// htaLoad loads the ranks of an oracle by the rules of Holistic Trace Analysis.
func htaLoad(t *testing.T, run *htaRun) [][]htaEvent {
	t.Helper()
	var ranks [][]htaEvent
	var all [][]rawEvent
	earliest := math.Inf(1)
	for _, path := range run.inputs(t) {
		raw := htaRead(t, path)
		for _, e := range raw {
			earliest = min(earliest, *e.TS)
		}
		all = append(all, raw)
	}
	for _, raw := range all {
		ranks = append(ranks, withoutLastStep(run.events(raw, earliest)))
	}
	return ranks
}

// A rawEvent is an event of a Chrome trace. Times are us, in the floating point that
// Holistic Trace Analysis computes with: at the present time since 1970, a step of it is 0.25
// us.
type rawEvent struct {
	Cat, Name string
	TS, Dur   *float64
	TID       any
	Args      map[string]any
}

// htaRead returns the complete events that Holistic Trace Analysis considers.
func htaRead(t *testing.T, path string) []rawEvent {
	t.Helper()
	var file struct{ TraceEvents []rawEvent }
	if err := json.Unmarshal(testinput.Gunzip(t, path), &file); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(file.TraceEvents, func(e rawEvent) bool {
		return e.TS == nil || e.Dur == nil || e.Cat == "" || e.Cat == "Trace"
	})
}

// events returns events with times since the earliest one.
func (r *htaRun) events(raw []rawEvent, earliest float64) []htaEvent {
	// A column is rounded if any of its numbers is not an integer.
	whole := !slices.ContainsFunc(raw, func(e rawEvent) bool { return *e.TS != math.Trunc(*e.TS) })
	events := make([]htaEvent, len(raw))
	for i, e := range raw {
		// The difference is exact, unlike the product of the absolute time.
		start, dur := int64(math.Round((*e.TS-earliest)*1000)), int64(math.Round(*e.Dur*1000))
		if r.rounds() && !whole {
			start = int64(math.Ceil(*e.TS)-math.Ceil(earliest)) * 1000
			dur = int64(math.Floor(*e.TS+*e.Dur)-math.Ceil(*e.TS)) * 1000
		}
		number := func(name string, unknown int64) int64 {
			if v, ok := e.Args[name].(float64); ok {
				return int64(v)
			}
			return unknown
		}
		tid, _ := e.TID.(float64)
		events[i] = htaEvent{cat: e.Cat, name: e.Name, start: start, end: start + dur, tid: int64(tid),
			stream: number("stream", -1), correlation: number("correlation", 0)}
		if events[i].stream == math.MaxUint32 {
			events[i].stream = -1 // of the whole device, no stream
		}
	}
	return events
}

// withoutLastStep drops the last ProfilerStep if there are several: the host events
// since it began, and the work that they launched.
func withoutLastStep(events []htaEvent) []htaEvent {
	names, last := map[string]bool{}, int64(math.MinInt64)
	for _, e := range events {
		if strings.HasPrefix(e.name, "ProfilerStep") && !e.onGPU() && e.cat != "gpu_user_annotation" {
			names[e.name] = true
			last = max(last, e.start)
		}
	}
	if len(names) < 2 {
		return events
	}
	launched := map[int64]bool{}
	for _, e := range events {
		if !e.onGPU() && e.start < last {
			launched[e.correlation] = true
		}
	}
	return slices.DeleteFunc(events, func(e htaEvent) bool {
		if e.onGPU() {
			return e.correlation == 0 || !launched[e.correlation]
		}
		return e.start >= last
	})
}

// An htaStream yields loaded events. All work of a device is a kernel: the rules of
// Holistic Trace Analysis recognize copies by name.
type htaStream struct {
	ranks [][]htaEvent
	syms  *trace.Symbols
	calls func(name string) bool // which calls to yield; nil is all
	// adopt assigns the first event of the file to kernels without a call. Holistic Trace Analysis
	// does so in its analysis of gaps: its index 0 means both "not found" and that event.
	adopt bool
}

func htaSet(ranks [][]htaEvent, calls func(string) bool, adopt bool) *profile.Set {
	set := &profile.Set{Syms: trace.NewSymbols()}
	for i := range ranks {
		set.Ranks = append(set.Ranks, strconv.Itoa(i))
	}
	set.Streams = []profile.Stream{&htaStream{ranks, set.Syms, calls, adopt}}
	return set
}

func (s *htaStream) each(f func(*htaEvent, profile.Event) bool) {
	for rank := range s.ranks {
		for i := range s.ranks[rank] {
			e := &s.ranks[rank][i]
			if !f(e, profile.Event{Start: trace.Time(e.start), End: trace.Time(e.end), Correlation: e.correlation,
				Name: s.syms.Intern(e.name), Rank: int32(rank), PID: -1}) {
				return
			}
		}
	}
}

func (s *htaStream) Kernels(yield func(*profile.Kernel) bool) {
	s.each(func(e *htaEvent, out profile.Event) bool {
		k := profile.Kernel{Event: out, Stream: uint32(e.stream)}
		if !e.runs() {
			k.Stream |= notOfStream
		}
		return !e.onGPU() || yield(&k)
	})
}

// notOfStream marks the streams of events that Holistic Trace Analysis counts as
// busy time of the device, but not of a stream.
const notOfStream = 1 << 31

// runs reports whether an event is work, rather than a wait or an operator with a stream argument.
func (e *htaEvent) runs() bool {
	return e.cat == "kernel" || e.cat == "gpu_memcpy" || e.cat == "gpu_memset" || e.cat == "mtia_ccp_events"
}

func (s *htaStream) Calls(yield func(*profile.Call) bool) {
	for rank, events := range s.ranks {
		if !s.adopt || len(events) == 0 {
			break
		}
		called := map[int64]bool{}
		for _, e := range events {
			called[e.correlation] = called[e.correlation] || !e.onGPU()
		}
		for _, e := range events {
			if e.onGPU() && e.correlation != 0 && !called[e.correlation] {
				at := trace.Time(events[0].start)
				yield(&profile.Call{Event: profile.Event{Start: at, End: at, Correlation: e.correlation, Rank: int32(rank)}})
			}
		}
	}
	s.each(func(e *htaEvent, out profile.Event) bool {
		return e.onGPU() || e.correlation == 0 || s.calls != nil && !s.calls(e.name) || yield(&profile.Call{Event: out, TID: e.tid})
	})
}

// Ranges yields none: in Holistic Trace Analysis, the time of devices does not depend on steps.
func (s *htaStream) Ranges(func(*profile.Range) bool) {}

func (s *htaStream) Copies(func(*profile.Copy) bool) {}

func (s *htaStream) Frames(func(*profile.Frame) bool)   {}
func (s *htaStream) Samples(func(*profile.Sample) bool) {}
func (s *htaStream) Backtraces(func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(func(*profile.Sample) bool) {}
}
func (s *htaStream) Runs(func(*profile.Run) bool) {}

// htaTable reads a table of an oracle; nil if there is none.
func htaTable(t *testing.T, dir, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := csv.NewReader(f)
	header, err := in.Read()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for {
		record, err := in.Read()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for i, v := range record {
			row[header[i]] = v
		}
		rows = append(rows, row)
	}
}

// us parses a time of an oracle, and returns ns.
func us(t *testing.T, v string) int64 {
	t.Helper()
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(math.Round(f * 1000))
}

func (s *htaStream) CounterValues(func(*profile.CounterValue) bool) {}
