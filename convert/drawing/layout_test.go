package drawing

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// eachDump runs f on simulated dumps of every deployment, and on all shared dumps small enough for
// a test.
func eachDump(t *testing.T, f func(t *testing.T, load func() *request.Set)) {
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		t.Run(mode.String(), func(t *testing.T) {
			config := simulator.DefaultConfig(7)
			config.Mode, config.Requests = mode, 120
			dump, _ := testinput.Simulate(t, config)
			f(t, func() *request.Set { return setOf(t, dump) })
		})
	}
	t.Run("shared", func(t *testing.T) {
		dir := testinput.Shared(t, "data", "otel")
		for _, pattern := range []string{"[abce]*.jsonl*", "i_*.jsonl", "damaged/*", "f_collector_variants/*.bin"} {
			names, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, name := range names {
				t.Run(filepath.Base(name), func(t *testing.T) {
					f(t, func() *request.Set {
						var diags trace.Diags
						set, err := requestsOf(&diags, name)
						if err != nil {
							t.Fatal(err)
						}
						return set
					})
				})
			}
		}
	})
}

// setOf reads a dump.
func setOf(t *testing.T, dump []byte) *request.Set {
	t.Helper()
	var diags trace.Diags
	d := spantable.New(&diags)
	if err := otlpjson.Read(d, "sim", bytes.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d).Set
}

// Every span of the dump is in both views of the written file, exact to the nanosecond, or counted
// as left out. If it had to be shortened, its arguments have the true times.
func TestEverySpanIsDrawn(t *testing.T) {
	eachDump(t, func(t *testing.T, load func() *request.Set) {
		set := load()
		checkEverySpanIsDrawn(t, set, Layout(set, Options{Requests: Every}))
	})
}

func checkEverySpanIsDrawn(t *testing.T, set *request.Set, model *trace.Trace) {
	t.Helper()
	if err := trace.Validate(model); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := perfetto.Write(&file, model); err != nil {
		t.Fatal(err)
	}
	got, err := readback.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	byProcess, byRequest := intervals(got, "By process"), intervals(got, "By request")
	leftOut := 0
	for i := range set.Len() {
		switch set.Kind(i) {
		case request.Unselected:
			leftOut++
			continue
		case request.Duplicate:
			continue
		}
		s := set.Row(i)
		want := interval{int64(s.Start), int64(max(s.Start, s.End))}
		if byProcess[want]--; byProcess[want] < 0 {
			t.Errorf("span %d %q is not in the thread view", i, set.Name(i))
		}
		if set.RequestOf(i) == request.None {
			continue
		}
		if byRequest[want]--; byRequest[want] < 0 {
			t.Errorf("span %d %q is not in the request view", i, set.Name(i))
		}
	}
	for _, d := range set.Diags.All() {
		if d.Code == "time-out-of-reach" && strings.HasPrefix(d.Msg, "span") {
			leftOut -= d.Count
		}
	}
	if leftOut != 0 {
		t.Errorf("%d more spans are left out than counted", leftOut)
	}
	if extra := left(byProcess) + left(byRequest); extra > 0 {
		t.Errorf("%d slices that are no spans", extra)
	}
}

type interval struct{ from, to int64 }

// intervals counts the true intervals of the slices below a group.
func intervals(t *readback.Trace, group string) map[interval]int {
	n := map[interval]int{}
	for _, s := range t.Slices {
		if path := s.Track.Path(); !strings.HasPrefix(path, group) {
			continue
		}
		iv := interval{s.Start, s.Start + s.Dur}
		if start, ok := s.Args["true_start_ns"].(int64); ok {
			iv = interval{start, max(start, s.Args["true_end_ns"].(int64))}
		}
		n[iv]++
	}
	return n
}

func left(counts map[interval]int) (n int) {
	for _, c := range counts {
		n += max(0, c)
	}
	return n
}

// Slices of one request on one thread stay on one lane where possible, and no lane is wasted: a new
// lane opens only if all others are taken.
func TestPack(t *testing.T) {
	u := func(from, to trace.Time, request int32) unit { return unit{from: from, to: to, request: request} }
	for _, c := range []struct {
		name  string
		units []unit
		want  string
	}{
		{"one after the other", []unit{u(0, 10, 1), u(10, 20, 2), u(25, 30, 3)}, "[1 2 3]"},
		{"overlapping", []unit{u(0, 10, 1), u(5, 20, 2), u(12, 15, 3)}, "[1 3] [2]"},
		{"a request keeps its lane", []unit{u(0, 100, 1), u(10, 20, 2), u(100, 110, 3), u(120, 130, 2)}, "[1 3] [2 2]"},
		{"a request whose lane is taken moves", []unit{u(0, 10, 1), u(0, 30, 2), u(10, 40, 3), u(20, 25, 1)}, "[1 3] [2] [1]"},
		{"jitter of one request", []unit{u(0, 5000, 1), u(4744, 9000, 1)}, "[1 1]"},
		{"jitter between requests", []unit{u(0, 5000, 1), u(4744, 9000, 2)}, "[1] [2]"},
	} {
		var got []string
		for _, lane := range pack(c.units) {
			var ids []string
			for _, u := range lane {
				ids = append(ids, fmt.Sprint(u.request))
			}
			got = append(got, "["+strings.Join(ids, " ")+"]")
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: lanes %v, want %s", c.name, got, c.want)
		}
	}
}

// The arrows of a request lead from the gateway to the prefill server to the decode server, forward
// in time once the hosts' clocks are aligned.
func TestArrowsFollowTheRequest(t *testing.T) {
	config := simulator.DefaultConfig(3)
	config.Requests, config.PrefillSkew, config.DecodeSkew = 60, 0, 0
	dump, truth := testinput.Simulate(t, config)
	model := Layout(setOf(t, dump), Options{View: ViewThread})
	names := map[string]int{}
	for _, f := range model.Flows {
		from, to := model.Slices[f.From], model.Slices[f.To]
		names[model.Syms.Name(f.Name)]++
		if model.Subjects[model.About[f.From]].ID != model.Subjects[model.About[f.To]].ID {
			t.Errorf("arrow %q joins two requests", model.Syms.Name(f.Name))
		}
		if to.Time < from.Time-slack {
			t.Errorf("arrow %q from %q to %q points back by %s", model.Syms.Name(f.Name), model.Syms.Name(from.Name),
				model.Syms.Name(to.Name), trace.FormatDuration(int64(from.Time-to.Time)))
		}
	}
	if want := 2 * truth.Counts.Requests; names["route"] != want {
		t.Errorf("%d arrows from the gateway, want %d", names["route"], want)
	}
	if names["kv transfer"] == 0 || names["next"] == 0 {
		t.Errorf("arrows: %v", names)
	}
}

// The same input gives the same bytes, whatever the order of files.
func TestOrderOfInputsDoesNotMatter(t *testing.T) {
	config := simulator.DefaultConfig(5)
	config.Requests = 80
	dump, _ := testinput.Simulate(t, config)
	lines := bytes.SplitAfter(dump, []byte("\n"))
	dir := t.TempDir()
	var names []string
	for i, part := range [][][]byte{lines[:len(lines)/3], lines[len(lines)/3 : len(lines)/2], lines[len(lines)/2:]} {
		name := filepath.Join(dir, fmt.Sprintf("part%d.json", i))
		if err := os.WriteFile(name, bytes.Join(part, nil), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	write := func(names []string) []byte {
		found, err := inputs.Find(names)
		if err != nil {
			t.Fatal(err)
		}
		var diags trace.Diags
		set, err := requestsOf(&diags, inputs.Names(found)...)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := perfetto.Write(&b, Layout(set, Options{Requests: Every})); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := write(names)
	slices.Reverse(names)
	if !bytes.Equal(first, write(names)) {
		t.Error("the order of the arguments changes the output")
	}
	if !bytes.Equal(first, write([]string{filepath.Join(dir, "part*.json"), dir})) {
		t.Error("a glob and a folder with the same files change the output")
	}
}

// The counters agree with the stages.
func TestCountersAgreeWithStages(t *testing.T) {
	config := simulator.DefaultConfig(2)
	dump, _ := testinput.Simulate(t, config)
	model := Layout(setOf(t, dump), Options{View: ViewThread})
	last := map[trace.TrackID]float64{}
	for _, s := range model.Samples {
		if s.Value < 0 {
			t.Fatalf("counter %q is negative", model.Syms.Name(model.Tracks[s.Track].Name))
		}
		last[s.Track] = s.Value
	}
	levels := 0
	for track, value := range last {
		if name := model.Syms.Name(model.Tracks[track].Name); strings.HasPrefix(name, "running · ") || strings.HasPrefix(name, "queued · ") {
			levels++
			if value != 0 {
				t.Errorf("counter %q ends at %v", name, value)
			}
		}
	}
	if levels == 0 {
		t.Error("no counters")
	}
}

// Perfetto's own importer reports no errors.
func TestTraceProcessor(t *testing.T) {
	processor := readback.Processor(t)
	eachDump(t, func(t *testing.T, load func() *request.Set) {
		for _, view := range []View{ViewBoth, ViewThread, ViewRequest} {
			var file bytes.Buffer
			if err := perfetto.Write(&file, Layout(load(), Options{View: view})); err != nil {
				t.Fatal(err)
			}
			readback.CheckImport(t, processor, file.Bytes())
		}
	})
}

// requestsOf reads the requests of dumps.
func requestsOf(diags *trace.Diags, names ...string) (*request.Set, error) {
	var files []inputs.Input
	for _, name := range names {
		files = append(files, inputs.Input{Name: name})
	}
	in, err := inputs.Load(files, inputs.Options{Requests: true}, diags)
	if err != nil {
		return nil, err
	}
	return in.Requests, nil
}
