package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// writeFiles writes files into a new folder.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func rankNames(m *merged) (names []string) {
	for _, r := range m.of.Tracks {
		names = append(names, r.Name)
	}
	return names
}

// Consecutive captures of one rank become one rank with a gap.
func TestCapturesOfOneRank(t *testing.T) {
	early := fakeRank{rank: 0, steps: 5, host: "node0"}
	late := fakeRank{rank: 0, steps: 7, host: "node0", first: 500_000_000}
	m, tr := mergeAll(t, writeFiles(t, map[string]string{
		"1758600000.5-TP-0-EXTEND.trace.json": early.write(), "1758600000.5-TP-0-DECODE.trace.json": late.write(),
	}))
	if names := rankNames(m); !slices.Equal(names, []string{"TP0"}) {
		t.Fatalf("ranks: %v", names)
	}
	if n := paths(tr)["By rank > TP0 > stream 7 (compute)"]; n != 3*12 {
		t.Errorf("stream 7 has %d slices, want 36", n)
	}
}

// Two servers with equal ranks, pids, and devices, on unknown hosts, were captured at the same
// time: their ranks stay separate.
func TestEqualRanksOfTwoServers(t *testing.T) {
	a, b := fakeRank{rank: 0, steps: 5}, fakeRank{rank: 0, steps: 7}
	prefill := strings.ReplaceAll(a.write(), "DECODE bs", "EXTEND bs")
	m, tr := mergeAll(t, writeFiles(t, map[string]string{
		"p-1758600000.5-TP-0.trace.json": prefill, "d-1758600007.5-TP-0.trace.json": b.write(),
	}))
	if names := rankNames(m); !slices.Equal(names, []string{"prefill TP0", "decode TP0"}) {
		t.Fatalf("ranks: %v", names)
	}
	if n := paths(tr)["By rank > prefill TP0 > stream 7 (compute)"]; n != 15 {
		t.Errorf("the prefill rank has %d kernels on stream 7, want 15", n)
	}
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) == "launch" && rankOf(tr, f.From) != rankOf(tr, f.To) {
			t.Fatal("a launch is joined to a kernel of another rank")
		}
	}
}

// Two servers with different pids were captured one after the other, and do different work: their ranks stay separate.
func TestRanksOfTwoServersInTurn(t *testing.T) {
	a, b := fakeRank{rank: 0, steps: 5}, fakeRank{rank: 0, steps: 7, first: 500_000_000}
	m, _ := mergeAll(t, writeFiles(t, map[string]string{
		"1758600000.5-TP-0.trace.json": strings.ReplaceAll(a.write(), "DECODE bs", "EXTEND bs"), "1758600007.5-TP-0.trace.json": strings.ReplaceAll(b.write(), `"pid": 700, "tid": 700`, `"pid": 711, "tid": 711`),
	}))
	if names := rankNames(m); !slices.Equal(names, []string{"prefill TP0", "decode TP0"}) {
		t.Fatalf("ranks: %v", names)
	}
}

// Rank 0 of one job is not rank 0 of another with more ranks or other accelerators, and neither job lacks the other's ranks.
func TestEqualRanksOfTwoJobs(t *testing.T) {
	device := func(name, text string) string {
		return strings.Replace(text, `"baseTime`, `"deviceProperties": [{"id": 0, "name": "`+name+`"}], "baseTime`, 1)
	}
	early, late := fakeRank{rank: 0, steps: 5}, fakeRank{rank: 0, steps: 7, first: 500_000_000}
	for name, c := range map[string]struct {
		a, b string
		want int
	}{
		"one job":       {device("NVIDIA H100", early.write()), device("NVIDIA H100", late.write()), 1},
		"another model": {device("NVIDIA H100", early.write()), device("NVIDIA GB300", late.write()), 2},
		"another size":  {early.write(), strings.Replace(late.write(), `"world_size": 4`, `"world_size": 64`, 1), 2},
	} {
		m, _ := mergeAll(t, writeFiles(t, map[string]string{"1758600000.5-TP-0.trace.json": c.a, "1758600007.5-TP-0.trace.json": c.b}))
		if jobs := m.of.Jobs(); len(jobs) != c.want || slices.Max(jobs) != c.want-1 {
			t.Errorf("%s: %v in jobs %v, want %d of each", name, rankNames(m), jobs, c.want)
		}
	}
}

// rankOf returns the group of the rank in which slice s is drawn.
func rankOf(tr *trace.Trace, s trace.SliceID) trace.TrackID {
	id := tr.Slices[s].Track
	for tr.Tracks[id].Kind != trace.KindProcess && id != 0 {
		id = tr.Tracks[id].Parent
	}
	return id
}

// SGLang's merger writes all ranks into one file, prefixes every pid with the rank, and renumbers
// nothing.
func TestSGLangMergedFile(t *testing.T) {
	var events []string
	for rank := range 2 {
		r := fakeRank{rank: rank, steps: 5, comms: true}
		_, list, _ := strings.Cut(r.write(), `"traceEvents": [`)
		list, _, _ = strings.Cut(list, "\n]}")
		for _, pid := range []string{"700", "0"} {
			list = strings.ReplaceAll(list, `"pid": `+pid+",", fmt.Sprintf(`"pid": "[TP%02d-DP00] %s",`, rank, pid))
		}
		events = append(events, list)
	}
	first := fakeRank{rank: 0, host: "node0"}
	head, _, _ := strings.Cut(first.write(), `"traceEvents": [`)
	m, tr := mergeAll(t, writeFiles(t, map[string]string{
		"merged-1758600000.5.trace.json": head + `"traceEvents": [` + strings.Join(events, ",") + "]}",
	}))
	if names := rankNames(m); !slices.Equal(names, []string{"TP0", "TP1"}) {
		t.Fatalf("ranks: %v", names)
	}
	if n := paths(tr)["By rank > TP1 > stream 20 (communication)"]; n != 5 {
		t.Errorf("TP1 has %d collectives, want 5", n)
	}
	flows := map[string]int{}
	for _, f := range tr.Flows {
		flows[tr.Syms.Name(f.Name)]++
		if tr.Syms.Name(f.Name) == "launch" && rankOf(tr, f.From) != rankOf(tr, f.To) {
			t.Fatal("a launch is joined to a kernel of another rank")
		}
	}
	if flows["launch"] != 2*5*3 || flows["collective"] != 5 {
		t.Errorf("arrows: %v", flows)
	}
}

// Labels complete names, and override them.
func TestLabels(t *testing.T) {
	a, b := fakeRank{rank: 0, steps: 3}, fakeRank{rank: 1, steps: 3}
	dir := writeFiles(t, map[string]string{"a.json": a.write(), "b.json": b.write()})
	m, _ := mergeAll(t, "east/TP4="+filepath.Join(dir, "a.json"), "TP5="+filepath.Join(dir, "b.json"))
	if names := rankNames(m); !slices.Equal(names, []string{"TP4", "TP5"}) {
		t.Errorf("ranks: %v", names)
	}
}

// Flow events connect the slices that the format defines: a start binds to the enclosing slice, an
// end to the enclosing or the next slice.
func TestFlowEventsOfChromeTraces(t *testing.T) {
	_, tr := mergeAll(t, writeFiles(t, map[string]string{"any.json": `[
{"ph":"X","name":"outer","pid":1,"tid":1,"ts":0,"dur":100},
{"ph":"X","name":"from","pid":1,"tid":1,"ts":10,"dur":20},
{"ph":"X","name":"over","pid":1,"tid":1,"ts":12,"dur":1},
{"ph":"X","name":"around","pid":1,"tid":2,"ts":40,"dur":20},
{"ph":"X","name":"next","pid":1,"tid":2,"ts":70,"dur":5},
{"ph":"s","name":"f","cat":"x","id":7,"pid":1,"tid":1,"ts":20},
{"ph":"t","name":"f","cat":"x","id":7,"pid":1,"tid":2,"ts":45},
{"ph":"f","name":"f","cat":"x","id":7,"pid":1,"tid":2,"ts":50},
{"ph":"s","name":"f","cat":"x","id":8,"pid":1,"tid":1,"ts":35},
{"ph":"f","bp":"e","name":"f","cat":"x","id":8,"pid":1,"tid":2,"ts":50},
{"ph":"f","name":"f","cat":"x","id":9,"pid":1,"tid":2,"ts":50}
]`}))
	var got []string
	for _, f := range tr.Flows {
		got = append(got, tr.Syms.Name(tr.Slices[f.From].Name)+" > "+tr.Syms.Name(tr.Slices[f.To].Name))
	}
	slices.Sort(got)
	if want := []string{"around > next", "from > around", "outer > around"}; !slices.Equal(got, want) {
		t.Errorf("arrows %v, want %v", got, want)
	}
}

// Overlapping events of one row that do not nest are drawn in full, on separate lanes.
func TestOverlappingKernelsKeepTheirTimes(t *testing.T) {
	_, tr := mergeAll(t, writeFiles(t, map[string]string{"any.json": `{"baseTimeNanoseconds": 1775078550000000000, "traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10.001,"dur":10.000},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":15.001,"dur":10.000},
{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":20.001,"dur":10.000}
]}`}))
	for _, s := range tr.Slices[1:] {
		if s.Dur != 10_000 {
			t.Errorf("%s lasts %d ns", tr.Syms.Name(s.Name), s.Dur)
		}
	}
	if got := paths(tr); got["By rank > process > stream 7 (compute)"] != 2 {
		t.Errorf("slices: %v", got)
	}
}

// An event that begins a nanosecond before its sibling ends, and ends after their parent, does not
// fit on their lane.
func TestOverlapBehindATolerableOne(t *testing.T) {
	_, tr := mergeAll(t, writeFiles(t, map[string]string{"any.json": `{"baseTimeNanoseconds": 1775078550000000000, "traceEvents": [
{"ph":"X","cat":"gpu_user_annotation","name":"annotation","pid":0,"tid":7,"ts":1.000,"dur":1000.000},
{"ph":"X","cat":"kernel","name":"first","pid":0,"tid":7,"ts":1.010,"dur":499.991},
{"ph":"X","cat":"kernel","name":"second","pid":0,"tid":7,"ts":501.000,"dur":1000.000}
]}`}))
	for _, s := range tr.Slices[1:] {
		if name := tr.Syms.Name(s.Name); name == "second" && tr.Tracks[tr.Tracks[s.Track].Parent].Kind == trace.KindProcess && (s.Dur != 1_000_000 || s.Time != 1775078550_000501000) {
			t.Errorf("%s is drawn at %d for %d ns", name, s.Time, s.Dur)
		}
	}
}

// A finding that states no times extends over whatever was recorded, also where no requests, no kernels, or only counters
// were: at time 0 it would stretch the timeline over decades. A group that would have no rows is left out.
func TestFindingsLieWithinWhatWasRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		events     string
		from, last trace.Time
	}{
		"operators": {`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10,"dur":20}`, 10_000, 30_000},
		"counters":  {`{"ph":"C","name":"bytes","pid":1,"ts":10,"args":{"n":1}},{"ph":"C","name":"bytes","pid":1,"ts":50,"args":{"n":2}}`, 10_000, 50_000},
	} {
		m, _ := readAll(t, inputs.Options{}, writeFiles(t, map[string]string{"any.json": `{"baseTimeNanoseconds": 1775078550000000000, "traceEvents": [` + test.events + `]}`}))
		if err := m.align(nil, true); err != nil {
			t.Fatal(err)
		}
		tr := m.layout(drawing.Options{Findings: []drawing.Finding{{Name: "of requests", Title: "a"}, {Name: "of profiles", Title: "b", OfProfiles: true}}})
		const base = trace.Time(1775078550_000_000_000)
		found := 0
		for _, s := range tr.Slices[1:] {
			if title := tr.Syms.Name(s.Name); title == "a" || title == "b" {
				if found++; s.Time != base+test.from || s.End() != base+test.last {
					t.Errorf("%s: finding %s is from %d to %d", name, title, s.Time-base, s.End()-base)
				}
			}
		}
		if found < 2 {
			t.Errorf("%s: %d slices of findings", name, found)
		}
		for _, x := range tr.Tracks {
			if tr.Syms.Name(x.Name) == profile.SideBySide {
				t.Errorf("%s: a group %q without rows", name, profile.SideBySide)
			}
		}
	}
}
