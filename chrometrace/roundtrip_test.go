package chrometrace

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// rewritten returns the file that Write writes for a trace.
func rewritten(t *testing.T, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The output of Write can be read again: every slice, instant, and value has its absolute time.
func TestOwnOutputComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		tr := readback.NumberedModel(readback.RandomBytes(rng, 400))
		data := rewritten(t, tr)
		r := readWith(Options{Workers: 2}, small, same, data)
		if r.err != nil {
			if len(tr.Slices) == 1 && len(tr.Instants)+len(tr.Samples) == 0 {
				continue
			}
			t.Fatal(r.err)
		}
		if r.loss() || r.Meta.Origin != profile.OriginUnix && r.Total > 0 {
			t.Errorf("%v %v", r.Meta, r.diags)
		}
		var got, want []string
		for _, s := range r.Events {
			got = append(got, fmt.Sprintf("%d+%d %s", s.Time, s.Dur, r.name(s.Name)))
		}
		for _, s := range tr.Slices[1:] {
			want = append(want, fmt.Sprintf("%d+%d %s", s.Time, s.Dur, strings.ToValidUTF8(tr.Syms.Name(s.Name), "\uFFFD")))
		}
		for _, x := range r.Instants {
			got = append(got, fmt.Sprintf("%d %s", x.Time, r.name(x.Name)))
		}
		for _, x := range tr.Instants {
			want = append(want, fmt.Sprintf("%d %s", x.Time, strings.ToValidUTF8(tr.Syms.Name(x.Name), "\uFFFD")))
		}
		for _, x := range r.Samples {
			got = append(got, fmt.Sprintf("%d %v", x.Time, x.Value))
		}
		for _, x := range tr.Samples {
			want = append(want, fmt.Sprintf("%d %v", x.Time, x.Value))
		}
		r.checkArrows(t, tr)
		slices.Sort(got)
		slices.Sort(want)
		if d := diff(got, want); d != "" {
			t.Error(d)
		}
		records, err := reference(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(r.records(), records); d != "" {
			t.Errorf("against encoding/json: %s", d)
		}
	}
}

// drawnArrows returns the arrows of a reading, with the times of both slices.
func (r reading) drawnArrows(t *testing.T) (out []string) {
	starts := map[string]trace.Time{}
	for _, a := range r.Arrows {
		if a.Event != profile.NoEvent && (r.Events[a.Event].Time != a.Time || r.Events[a.Event].Place.Row() != a.Row) {
			t.Errorf("%+v is not of %+v", a, r.Events[a.Event])
		}
		key := fmt.Sprint(a.Cat, a.Name, r.name(a.ID), a.Event != profile.NoEvent)
		if a.Phase == profile.FlowStart {
			starts[key] = a.Time
		} else if from, ok := starts[key]; !ok {
			t.Errorf("%+v has no start", a)
		} else {
			out = append(out, fmt.Sprintf("%s from %d to %d", r.name(a.Name), from, a.Time))
		}
	}
	return out
}

// checkArrows compares the arrows of a reading with the flows that were written. Arrows given
// within slices have no name.
func (r reading) checkArrows(t *testing.T, tr *trace.Trace) {
	t.Helper()
	named := map[string]int{}
	var got, want []string
	for _, f := range tr.Flows {
		name := strings.ToValidUTF8(cmp.Or(tr.Syms.Name(f.Name), "flow"), "\uFFFD")
		from, to := tr.Slices[f.From].Time, tr.Slices[f.To].Time
		times := fmt.Sprintf(" from %d to %d", min(from, to), max(from, to))
		named[name+times]++
		want = append(want, times)
	}
	for _, a := range r.drawnArrows(t) {
		name, times, _ := strings.Cut(a, " from ")
		got = append(got, " from "+times)
		if named[a]--; name != "" && named[a] < 0 {
			t.Errorf("the arrow %q was not written so often", a)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := diff(got, want); d != "" {
		t.Error(d)
	}
}

// Two ranks with the same correlation ids, and a collective between them: exactly the written
// arrows come back. The first launch starts with a child.
func TestOwnArrowsComeBack(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	slice := func(track trace.TrackID, cat, name string, from, dur, correlation int64) trace.SliceID {
		return b.Slice(trace.Slice{Time: trace.Time(from), Dur: dur, Track: track, Name: b.Intern(name), Cat: b.Intern(cat),
			Args: b.Args().Put(trace.ArgList{}.Int(b.Intern("correlation"), correlation))}, 0)
	}
	var last trace.SliceID
	for rank := range int64(2) {
		cpu := b.Track(trace.Track{Name: b.Intern(fmt.Sprint("cpu ", rank))})
		gpu := b.Track(trace.Track{Name: b.Intern(fmt.Sprint("gpu ", rank))})
		for i := range int64(3) {
			call := slice(cpu, "cuda_runtime", "cudaLaunchKernel", 1000+100*i+rank, 10, 1+i)
			if rank+i == 0 {
				slice(cpu, "cuda_driver", "cuLaunchKernel", 1000, 5, 99)
			}
			kernel := slice(gpu, "kernel", "gemm", 1050+100*i+rank, 20, 1+i)
			b.Flow(trace.Flow{From: call, To: kernel, Name: b.Intern("launch")})
			if i == 0 && rank == 1 {
				b.Flow(trace.Flow{From: last, To: kernel, Name: b.Intern("collective")})
			}
			last = kernel
		}
	}
	tr := b.Finish()
	data := rewritten(t, tr)
	want := map[string]int{"": 1, "launch": 5, "collective": 1}
	for _, l := range []parse.Limits{parse.Usual, tiny} {
		r := readWith(Options{Workers: 2}, l, same, data)
		arrows, counts := r.drawnArrows(t), map[string]int{}
		for _, x := range arrows {
			name, _, _ := strings.Cut(x, " ")
			counts[name]++
		}
		if launches, work := r.links(); !maps.Equal(counts, want) || launches+work > 0 {
			t.Errorf("arrows %v, want %v; %d launches", counts, want, launches)
		}
		r.checkArrows(t, tr)
	}
	// A filter does not restore wrong links.
	r := readWith(Options{Filter: profile.Filter{Cats: []string{"kernel", "cuda_runtime"}}}, parse.Usual, same, data)
	if launches, work := r.links(); launches+work > 0 {
		t.Errorf("%d launches with a filter", launches)
	}
	// If the file is from another producer, or has no such arrows, launches are linked by
	// correlations only.
	for _, other := range [][]byte{
		bytes.ReplaceAll(data, []byte(`"base_time_ns"`), []byte(`"base_time_xx"`)),
		bytes.ReplaceAll(bytes.ReplaceAll(data, []byte(`"launch"`), []byte(`"other"`)), []byte("flow_out"), []byte("flow_xxx")),
	} {
		if launches, work := readWith(Options{}, parse.Usual, same, other).links(); launches != 7 || work != 6 {
			t.Errorf("%d launches and %d kernels, want 7 and 6", launches, work)
		}
	}
}

// Ranks that were written come back as parts with their processes, threads, and streams, once.
// Launches are linked by correlations, not by their arrows.
func TestOwnRanksComeBack(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	group := b.Track(trace.Track{Kind: trace.KindGroup, Name: b.Intern(profile.ByRank)})
	beside := b.Track(trace.Track{Kind: trace.KindGroup, Name: b.Intern(profile.SideBySide)})
	compute := b.Track(trace.Track{Kind: trace.KindGroup, Parent: beside, Name: b.Intern("Compute")})
	for n := range int16(2) {
		rank := trace.NoRank
		rank.TP = n
		name := fmt.Sprintf("decode TP%d (node0)", n)
		track := b.Track(trace.Track{Kind: trace.KindProcess, Parent: group, Name: b.Intern(name), Host: b.Intern("node0"), Rank: rank, PID: 41})
		add := func(track trace.Track, cat, event string, from int64) trace.SliceID {
			return b.Slice(trace.Slice{Time: trace.Time(from), Dur: 10, Track: b.Track(track), Name: b.Intern(event), Cat: b.Intern(cat),
				Args: b.Args().Put(trace.ArgList{}.Int(b.Intern("correlation"), 7))}, 0)
		}
		call := add(trace.Track{Kind: trace.KindThread, Parent: track, Name: b.Intern("thread 43"), PID: 41, TID: 43}, "cuda_runtime", "cudaLaunchKernel", 1000)
		kernel := add(trace.Track{Kind: trace.KindStream, Parent: track, Name: b.Intern("stream 0"), PID: 0, TID: 0}, "kernel", "gemm", 1050)
		add(trace.Track{Kind: trace.KindThread, Parent: track, Name: b.Intern("profiler")}, "overhead", "flush", 1070)
		copied := add(trace.Track{Kind: trace.KindThread, Parent: compute, Name: b.Intern(name)}, "kernel", "gemm", 1050)
		b.Flow(trace.Flow{From: call, To: kernel, Name: b.Intern("launch")})
		b.Flow(trace.Flow{From: call, To: copied, Name: b.Intern("collective")})
	}
	data := rewritten(t, b.Finish())
	for _, l := range []parse.Limits{parse.Usual, tiny} {
		r := readWith(Options{Workers: 2}, l, same, data)
		want := map[string]string{"decode TP0 (node0)": "node0/TP0", "decode TP1 (node0)": "node0/TP1"}
		if !maps.Equal(r.Meta.Parts, want) {
			t.Errorf("parts %v, want %v", r.Meta.Parts, want)
		}
		var got []string
		for _, s := range r.Events {
			row := r.Rows[s.Place.Row()]
			got = append(got, fmt.Sprint(row.Part, " ", row.Kind, " ", row.PID, " ", row.TID, " ", r.name(s.Name)))
		}
		slices.Sort(got)
		var events []string
		for part := range want {
			events = append(events, fmt.Sprint(part, " ", profile.RowThread, " 41 43 cudaLaunchKernel"), fmt.Sprint(part, " ", profile.RowStream, " 0 0 gemm"))
		}
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, "flush") })
		slices.Sort(events)
		if d := diff(got, events); d != "" {
			t.Error(d)
		}
		if launches, work := r.links(); len(r.Events) != 6 || launches != 2 || work != 2 || len(r.Arrows) != 0 {
			t.Errorf("%d events, %d launches, %d kernels, %d arrows; want 6, 2, 2, 0", len(r.Events), launches, work, len(r.Arrows))
		}
		if codes := r.codes(); codes != "own-rows-repeated@0*2" {
			t.Errorf("diagnostics %s", codes)
		}
	}
	// Without our writer's header, the rows are read like those of any program.
	r := readWith(Options{}, parse.Usual, same, bytes.ReplaceAll(data, []byte(`"base_time_ns"`), []byte(`"base_time_xx"`)))
	if len(r.Events) != 8 || r.Meta.Parts != nil {
		t.Errorf("of another program: %d events, parts %v", len(r.Events), r.Meta.Parts)
	}
}
