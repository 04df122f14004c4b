package chrometrace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

func encode(t testing.TB, tr *trace.Trace) []byte {
	t.Helper()
	if err := trace.Validate(tr); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func newBuilder() *trace.Builder {
	return trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
}

// trackOf returns the number at the end of a name given by [readback.NumberedModel].
func trackOf(t testing.TB, name string) trace.TrackID {
	t.Helper()
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, ' ')+1:])
	if err != nil {
		t.Fatalf("name %q", name)
	}
	return trace.TrackID(n)
}

// row formats an event as text, to compare lists of events.
func row(track trace.TrackID, kind, name, cat string, start, dur int64, args any) string {
	return fmt.Sprintf("%d %s %q %q %d+%d %v", track, kind, name, cat, start, dur, args)
}

// written returns the events of a file as rows, and its slices.
func written(t testing.TB, f *file) (rows []string, xs []*jsonEvent) {
	t.Helper()
	_, threads := f.names(t)
	last := int64(0)
	for _, e := range f.TraceEvents {
		if e.Ph != "M" && e.Cat == "" || e.start < last {
			t.Fatalf("event without category or out of order: %+v", e)
		}
		last = e.start
		at := f.BaseTimeNanoseconds + e.start
		switch e.Ph {
		case "X":
			xs = append(xs, e)
			rows = append(rows, row(trackOf(t, threads[thread{e.PID, e.TID}]), "slice", e.Name, e.Cat, at, e.dur, normal(e.Args)))
		case "i":
			rows = append(rows, row(trackOf(t, threads[thread{e.PID, e.TID}]), "instant", e.Name, e.Cat, at, 0, normal(e.Args)))
		case "C":
			for _, v := range e.Args {
				rows = append(rows, row(trackOf(t, e.Name), "sample", "", "", at, 0, v))
			}
		}
	}
	return rows, xs
}

// wanted returns the events of a trace as rows, with slices in the order in which they must be
// written.
func wanted(tr *trace.Trace) (rows []string, ids []trace.SliceID) {
	name := func(s trace.Sym) string { return readback.Valid(tr.Syms.Name(s)) }
	for id, s := range tr.Slices[1:] {
		ids = append(ids, trace.SliceID(id+1))
		args := readback.Args(tr, s.Args, tr.Subjects[tr.About[id+1]].Args)
		rows = append(rows, row(s.Track, "slice", name(s.Name), cmp.Or(name(s.Cat), "slice"), int64(s.Time), s.Dur, normal(args)))
	}
	for _, i := range tr.Instants {
		rows = append(rows, row(i.Track, "instant", name(i.Name), "instant", int64(i.Time), 0, normal(readback.Args(tr, i.Args, 0))))
	}
	for _, s := range tr.Samples {
		rows = append(rows, row(s.Track, "sample", "", "", int64(s.Time), 0, strconv.FormatFloat(s.Value, 'g', -1, 64)))
	}
	slices.SortStableFunc(ids, func(a, b trace.SliceID) int { return cmp.Compare(tr.Slices[a].Time, tr.Slices[b].Time) })
	return rows, ids
}

// normal normalizes a value so that values which JSON cannot distinguish are equal.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		out := map[string]any{}
		for key, value := range v {
			out[cmp.Or(key, "_")] = normal(value)
		}
		return out
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		var out []any
		for _, value := range v {
			out = append(out, normal(value))
		}
		return out
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func TestRandomModelsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		checkRoundTrip(t, readback.NumberedModel(readback.RandomBytes(r, r.IntN(1200))))
	}
}

func FuzzWrite(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 8 {
		f.Add(readback.RandomBytes(r, n*100))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr := readback.NumberedModel(data)
		checkRoundTrip(t, tr)
		names := slices.Clone(tr.Syms.Names())
		slices.Reverse(names)
		if other := readback.Model(data, names...); !bytes.Equal(encode(t, readback.Model(data)), encode(t, other)) {
			t.Fatal("the numbers of symbols make a difference")
		}
	})
}

func checkRoundTrip(t testing.TB, tr *trace.Trace) {
	t.Helper()
	f := decode(t, encode(t, tr))
	got, xs := written(t, f)
	want, ids := wanted(tr)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkArrows(t, tr, f, xs, ids)
}

// checkArrows compares the arrows that Perfetto draws with the flows of tr. xs[i] is the slice
// ids[i].
func checkArrows(t testing.TB, tr *trace.Trace, f *file, xs []*jsonEvent, ids []trace.SliceID) {
	t.Helper()
	id := map[*jsonEvent]trace.SliceID{}
	for i, x := range xs {
		id[x] = ids[i]
	}
	var got, want []string
	for _, a := range f.arrows(t) {
		got = append(got, fmt.Sprint(id[a.from], " to ", id[a.to]))
	}
	for _, flow := range tr.Flows {
		from, to := flow.From, flow.To
		if tr.Slices[to].Time < tr.Slices[from].Time {
			from, to = to, from
		}
		exact := fmt.Sprint(from, " to ", to)
		if i := slices.Index(got, exact); i >= 0 {
			got = slices.Delete(got, i, i+1)
			continue
		}
		if innermost(tr, from) == from && innermost(tr, to) == to {
			t.Fatalf("no arrow from %s", exact)
		}
		want = append(want, fmt.Sprint(innermost(tr, from), " to ", innermost(tr, to)))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("arrows of children:\n got %v\nwant %v", got, want)
	}
}

// innermost returns the slice that an arrow's event at the start of s attaches to.
func innermost(tr *trace.Trace, s trace.SliceID) trace.SliceID {
	for id := trace.SliceID(1); int(id) < len(tr.Slices); id++ {
		if tr.Slices[id].Track == tr.Slices[s].Track && tr.Slices[id].Time == tr.Slices[s].Time && before(tr, s, id) {
			s = id
		}
	}
	return s
}

// An arrow connects two requests, each of which starts with a child.
func TestArrowsOfSlicesThatStartWithAChild(t *testing.T) {
	b := newBuilder()
	slice := func(track trace.TrackID, name string, from, dur int64) trace.SliceID {
		return b.Slice(trace.Slice{Time: trace.Time(from), Dur: dur, Track: track, Name: b.Intern(name)}, 0)
	}
	lanes := []trace.TrackID{b.Track(trace.Track{}), b.Track(trace.Track{}), b.Track(trace.Track{})}
	source := slice(lanes[0], "source", 10, 100)
	slice(lanes[0], "child", 10, 50)
	for i, lane := range lanes[1:] {
		target := slice(lane, fmt.Sprint("target ", i), 20, 100)
		slice(lane, "child", 20, 50)
		b.Flow(trace.Flow{From: source, To: target})
	}
	var got []string
	for _, a := range decode(t, encode(t, b.Finish())).arrows(t) {
		got = append(got, a.from.Name+" to "+a.to.Name)
	}
	if want := []string{"source to target 0", "source to target 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLayout(t *testing.T) {
	b := newBuilder()
	add := func(parent trace.TrackID, kind trace.TrackKind, name string, order int32, pid int64) trace.TrackID {
		id := b.Track(trace.Track{Parent: parent, Kind: kind, Name: b.Intern(name), Order: order, PID: pid})
		if kind == trace.KindCounter {
			b.Sample(trace.Sample{Time: 7, Track: id, Value: 1})
		} else if kind != trace.KindGroup && kind != trace.KindHost {
			b.Slice(trace.Slice{Time: 5, Dur: 1, Track: id}, 0)
		}
		return id
	}
	threads := add(0, trace.KindGroup, "Threads", 2, 0)
	host := add(threads, trace.KindHost, "host a", 0, 0)
	scheduler := add(host, trace.KindProcess, "Scheduler TP0", 0, 713)
	add(scheduler, trace.KindThread, "main", 1, 713)
	gpu := add(scheduler, trace.KindGroup, "GPU 0", 0, 0)
	add(gpu, trace.KindStream, "stream 7", 0, 0)
	add(gpu, trace.KindCounter, "memory", 0, 0)
	add(gpu, trace.KindCounter, "memory", 0, 0)
	requests := add(0, trace.KindGroup, "Requests", 1, 0)
	request := add(requests, trace.KindRequest, "rid 1", 0, 0)
	add(request, trace.KindRequest, "prefill", 0, 0)
	add(host, trace.KindThread, "lost", 3, 0)
	add(0, trace.KindThread, "", 9, 0)
	f := decode(t, encode(t, b.Finish()))
	processes, all := f.names(t)
	got := map[string]string{}
	for at, name := range all {
		got[fmt.Sprintf("%d.%d", at.pid, at.tid)] = processes[at.pid] + " / " + name
	}
	for _, e := range f.TraceEvents {
		if e.Ph == "C" {
			got[fmt.Sprint("C", e.PID, e.ID)] = e.Name
		}
	}
	want := map[string]string{
		"1.1":      "Requests > rid 1 / rid 1",
		"1.2":      "Requests > rid 1 / prefill",
		"2.3":      "Threads > host a > Scheduler TP0 (pid 713) / Scheduler TP0",
		"2.4":      "Threads > host a > Scheduler TP0 (pid 713) / GPU 0 > stream 7",
		"2.5":      "Threads > host a > Scheduler TP0 (pid 713) / main",
		"3.6":      "Threads > host a / lost",
		"4.7":      "track 13 / track 13",
		"C2 <nil>": "GPU 0 > memory",
		"C21":      "GPU 0 > memory",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestHeader(t *testing.T) {
	b := newBuilder()
	b.Attribute("tool \"x\"", "\xff</script>\x01")
	b.Slice(trace.Slice{Time: 1_700_000_000_123_456_789, Dur: 12_345, Track: b.Track(trace.Track{})}, 0)
	data := encode(t, b.Finish())
	f := decode(t, data)
	want := map[string]string{
		"base_time_ns": "1700000000123456789",
		"base_time":    "2023-11-14T22:13:20.123456789Z",
		"tool \"x\"":   "\uFFFD</script>\x01",
	}
	if !reflect.DeepEqual(f.Metadata, want) || f.DisplayTimeUnit != "ns" || f.BaseTimeNanoseconds != 1_700_000_000_123_456_789 {
		t.Errorf("header %+v", f)
	}
	if !bytes.Contains(data, []byte(`"ts":0.000,"dur":12.345`)) {
		t.Errorf("times in %s", data)
	}
}

func TestEmptyTrace(t *testing.T) {
	if f := decode(t, encode(t, newBuilder().Finish())); len(f.TraceEvents) != 0 {
		t.Errorf("events %v", f.TraceEvents)
	}
}

func TestStrings(t *testing.T) {
	for _, s := range []string{
		"", "plain", `"\/`, "\x00\x1f\x7f\t\n\r", "😀 ü \u2028", "a\xffb\xfe\xfdc", "\xf0\x9f\x98", "</script>", `\ud83d\ude00`,
	} {
		q := quote(s)
		var got string
		if err := json.Unmarshal([]byte(q), &got); err != nil || got != readback.Valid(s) {
			t.Errorf("%q is written as %s: %q, %v", s, q, got, err)
		}
		if strings.Contains(strings.ReplaceAll(q, `\\`, ""), `\ud`) {
			t.Errorf("%q has an escaped surrogate, which aborts Perfetto's import: %s", s, q)
		}
		if strings.ContainsFunc(q, unicode.IsControl) {
			t.Errorf("%q has a control character, which aborts Perfetto's import: %q", s, q)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", -1.5: "-1.5", 1e300: "1e+300", math.Inf(1): `"+Inf"`, math.Inf(-1): `"-Inf"`,
	} {
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
	if got := string(appendFloat(nil, math.NaN())); got != `"NaN"` {
		t.Errorf("NaN is written as %s", got)
	}
	for ns, want := range map[uint64]string{0: "0.000", 7: "0.007", 1_000: "1.000", 123_456_789: "123456.789", math.MaxUint64: "18446744073709551.615"} {
		if got := string(appendMicros(nil, ns)); got != want {
			t.Errorf("%d ns are written as %s, want %s", ns, got, want)
		}
	}
}

// fullDisk accepts n bytes.
type fullDisk struct{ n int }

var errFull = errors.New("disk full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.n -= len(p); d.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEveryWriteIsChecked(t *testing.T) {
	tr := threads(20_000)
	size := len(encode(t, tr))
	for _, room := range []int{0, bufferSize, size / 2, size - 1} {
		if err := Write(&fullDisk{room}, tr); !errors.Is(err, errFull) {
			t.Errorf("with room for %d of %d bytes: error %v", room, size, err)
		}
	}
	if err := Write(&fullDisk{size}, tr); err != nil {
		t.Errorf("with room for all: %v", err)
	}
}

func TestTraceProcessorAgrees(t *testing.T) {
	processor := readback.Processor(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		tr := readback.NumberedModel(readback.RandomBytes(r, 1500))
		data := encode(t, tr)
		readback.CheckImport(t, processor, data)
		f := decode(t, data)
		var want []string
		for _, e := range f.TraceEvents {
			if e.Ph == "X" || e.Ph == "i" {
				want = append(want, fmt.Sprintf("%d,%d,%d,%d", e.PID, e.TID, e.start, e.dur))
			}
		}
		readback.CheckRows(t, processor, data, `SELECT p.pid, t.tid, s.ts, s.dur FROM slice s
JOIN thread_track tt ON s.track_id = tt.id JOIN thread t USING(utid) JOIN process p USING(upid)`, want)
		want = nil
		for _, a := range f.arrows(t) {
			want = append(want, fmt.Sprintf("%d,%d,%d,%d", a.from.start, a.from.dur, a.to.start, a.to.dur))
		}
		readback.CheckRows(t, processor, data, `SELECT o.ts AS a, o.dur AS b, i.ts AS c, i.dur AS d
FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in`, want)
	}
}

// threads returns n slices on four tracks, half of them children, with arguments and arrows.
func threads(n int) *trace.Trace {
	b := newBuilder()
	var tracks [4]trace.TrackID
	for i := range tracks {
		tracks[i] = b.Track(trace.Track{Kind: trace.KindThread, Name: b.Intern(fmt.Sprint("thread ", i))})
	}
	var names [50]trace.Sym
	for i := range names {
		names[i] = b.Intern(fmt.Sprintf("void kernel_%d<float, 128>(\"Params\")", i))
	}
	cat, module, corr := b.Intern("kernel"), b.Intern("module"), b.Intern("correlation")
	last := trace.SliceID(0)
	for i := range n / 2 {
		args := b.Args().Put(trace.ArgList(nil).Int(corr, int64(i)).String(module, fmt.Sprint("model.layers.", i%40)))
		s := trace.Slice{Time: trace.Time(1_700_000_000_000_000_000 + i*500), Dur: 400, Track: tracks[i%4], Name: names[i%50], Cat: cat, Args: args}
		parent := b.Slice(s, 0)
		s.Time, s.Dur = s.Time+10, 100
		child := b.Child(parent, s, 0)
		if i%4 == 0 && i > 0 {
			b.Flow(trace.Flow{From: last, To: parent})
		}
		last = child
	}
	return b.Finish()
}

func BenchmarkWrite(b *testing.B) {
	t := threads(400_000)
	size := len(encode(b, t))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, t); err != nil {
			b.Fatal(err)
		}
	}
	slices := float64(len(t.Slices) - 1)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/slices, "ns/slice")
	b.ReportMetric(float64(size)/slices, "B/slice")
}

// In traces that span years, whole microseconds keep slices nested; nanoseconds, which importers
// round, would not.
func TestLongTracesHaveWholeMicroseconds(t *testing.T) {
	b := newBuilder()
	track := b.Track(trace.Track{Kind: trace.KindThread, Name: b.Intern("t")})
	b.Slice(trace.Slice{Time: 0, Dur: 1, Track: track}, 0)
	const late = (MaxExact/1000 + 1) * 1000
	b.Slice(trace.Slice{Time: late + 1_999, Dur: 3_002, Track: track}, 0)
	b.Slice(trace.Slice{Time: late + 2_001, Dur: 2_998, Track: track}, 0)
	var out bytes.Buffer
	if err := Write(&out, b.Finish()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.000,"dur":4.000`, `.000,"dur":2.000`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}
