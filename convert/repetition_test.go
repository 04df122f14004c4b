package convert

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// repeatedRank is a rank of a server on two hosts; the second host's clock is ahead.
func repeatedRank(rank int) fakeRank {
	r := fakeRank{rank: rank, steps: 40, comms: true, host: "node0"}
	if rank >= 2 {
		r.host, r.offset = "node1", 1_734_500
	}
	return r
}

// mergedByStage merges files, given by rank, as SGLang does: all events in one list, with the rank
// before every pid.
func mergedByStage(files map[string][]string) string {
	var events []string
	for _, part := range slices.Sorted(maps.Keys(files)) {
		for _, text := range files[part] {
			_, list, _ := strings.Cut(text, `"traceEvents": [`)
			list, _, _ = strings.Cut(list, "\n]}")
			for _, pid := range []string{"700", "0"} {
				list = strings.ReplaceAll(list, `"pid": `+pid+",", fmt.Sprintf(`"pid": "[%s] %s",`, part, pid))
			}
			events = append(events, list)
		}
	}
	head, _, _ := strings.Cut(files["TP00"][0], `"traceEvents": [`)
	return head + `"traceEvents": [` + strings.Join(events, ",") + "]}"
}

// codes counts diagnostics by code.
func codes(diags *trace.Diags) map[string]int {
	n := map[string]int{}
	for _, d := range diags.All() {
		if d.Message != trace.InputsFound {
			n[d.Code] += d.Count
		}
	}
	return n
}

// clockOf returns the clock record of a rank's host.
func clockOf(t *testing.T, m *merged, rank string) clocks.ClockRecord {
	t.Helper()
	for _, l := range m.clocks.Report(m.of).Clocks {
		if slices.Contains(l.Ranks, rank) {
			return l
		}
	}
	t.Fatalf("%s is on no clock: %+v", rank, m.clocks.Report(m.of).Clocks)
	return clocks.ClockRecord{}
}

// SGLang's output directory contains the files of the ranks, and one merged from all of them. Each
// rank is drawn once; one whose own file is missing is taken from the merged file.
func TestMergedFileBesideItsRanks(t *testing.T) {
	files, parts := map[string]string{}, map[string][]string{}
	for rank := range 4 {
		r := repeatedRank(rank)
		parts[fmt.Sprintf("TP%02d", rank)] = []string{r.write()}
		if rank < 3 {
			files[fmt.Sprintf("1758600000.5-TP-%d.trace.json", rank)] = r.write()
		}
	}
	files["merged-1758600000.5.trace.json"] = mergedByStage(parts)
	dir := writeFiles(t, files)
	for name, filter := range map[string]profile.Filter{
		"everything": {}, "the index": {IndexOnly: true}, "kernels": {Cats: []string{"kernel"}}, "a category that nothing has": {Cats: []string{"none"}},
	} {
		m, diags := readAll(t, inputs.Options{Filter: filter}, dir)
		if names := rankNames(m); !slices.Equal(names, []string{"TP0", "TP1", "TP2", "TP3"}) {
			t.Errorf("%s: ranks %v", name, names)
		}
		if got, want := codes(diags), map[string]int{"capture-repeated": 3}; !maps.Equal(got, want) {
			t.Errorf("%s: diagnostics %v, want %v", name, got, want)
		}
	}
	m, tr := mergeAll(t, dir)
	for path, n := range paths(tr) {
		if strings.HasSuffix(path, "stream 20 (communication)") && n != 40 {
			t.Errorf("%s has %d collectives, want 40", path, n)
		}
	}
	if c := clockOf(t, m, "TP2"); c.Why != "matched" || c.Offset < 1_733_500 || c.Offset > 1_735_500 {
		t.Errorf("clock of TP2: %+v", c)
	}
	if n := arrowsOfCollectives(tr); n != 3*40 {
		t.Errorf("%d arrows of collectives, want 120", n)
	}
}

// A copy beside the files of all ranks is left out, whatever its name: the rank stays in its job, and takes part in collectives.
func TestCopyOfARank(t *testing.T) {
	files := map[string]string{}
	for rank := range 4 {
		r := repeatedRank(rank)
		files[fmt.Sprintf("1758600000.5-TP-%d.trace.json", rank)] = r.write()
	}
	files["1-copy-TP-2.trace.json"] = files["1758600000.5-TP-2.trace.json"]
	if _, tr := mergeAll(t, writeFiles(t, files)); arrowsOfCollectives(tr) != 3*40 {
		t.Errorf("%d arrows of collectives, want 120", arrowsOfCollectives(tr))
	}
}

func arrowsOfCollectives(tr *trace.Trace) (n int) {
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) == "collective" {
			n++
		}
	}
	return n
}

// When a capture has several stages, each rank's part of the merged file equals two files.
func TestMergedFileBesideStages(t *testing.T) {
	files, parts := map[string]string{}, map[string][]string{}
	for rank := range 2 {
		part := fmt.Sprintf("TP%02d", rank)
		for i, stage := range []string{"EXTEND", "DECODE"} {
			r := fakeRank{rank: rank, steps: 10, comms: true, host: "node0", first: int64(i) * 1_000_000_000}
			files[fmt.Sprintf("1758600000.5-TP-%d-%s.trace.json", rank, stage)] = r.write()
			parts[part] = append(parts[part], r.write())
		}
	}
	files["merged-1758600000.5.trace.json"] = mergedByStage(parts)
	dir := writeFiles(t, files)
	check := func(what string, want map[string]int) {
		t.Helper()
		m, diags := readAll(t, inputs.Options{}, dir)
		if names := rankNames(m); !slices.Equal(names, []string{"TP0", "TP1"}) {
			t.Fatalf("%s: ranks %v", what, names)
		}
		if got := codes(diags); !maps.Equal(got, want) {
			t.Errorf("%s: diagnostics %v, want %v", what, got, want)
		}
		_, tr := mergeAll(t, dir)
		for _, rank := range []string{"TP0", "TP1"} {
			if n := paths(tr)["By rank > "+rank+" > stream 20 (communication)"]; n != 20 {
				t.Errorf("%s: %s has %d collectives, want 20", what, rank, n)
			}
		}
	}
	check("all", map[string]int{"capture-repeated": 2})
	name := filepath.Join(dir, "1758600000.5-TP-0-DECODE.trace.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	check("one stage of one rank is missing", map[string]int{"capture-repeated": 1, "capture-contained": 1})
	// A truncated copy does not hide that the remaining files equal the merged part.
	for _, c := range [][]byte{data, data[:len(data)*2/3]} {
		if err := os.WriteFile(fmt.Sprintf("%s.%d.json", strings.TrimSuffix(name, ".json"), len(c)), c, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("with a copy that was cut off", map[string]int{"capture-repeated": 2, "capture-contained": 1, "trace-truncated": 1})
}

// A merged file alone repeats nothing, and each part has the bounds of its own events.
func TestMergedFileAlone(t *testing.T) {
	early, late := fakeRank{rank: 0, steps: 5}, fakeRank{rank: 1, steps: 5, first: 700_000_000}
	dir := writeFiles(t, map[string]string{
		"merged-1758600000.5.trace.json": mergedByStage(map[string][]string{"TP00": {early.write()}, "TP01": {late.write()}}),
	})
	m, diags := readAll(t, inputs.Options{}, dir)
	if list := codes(diags); len(list) > 0 {
		t.Errorf("diagnostics: %v", list)
	}
	a, b := m.of.Tracks[0].Captures[0], m.of.Tracks[1].Captures[0]
	if d := b.First - a.First; d != 700_000_000 || a.Last >= b.First {
		t.Errorf("parts from %d to %d, and from %d to %d", a.First, a.Last, b.First, b.Last)
	}
	m, _ = readAll(t, inputs.Options{Filter: profile.Filter{IndexOnly: true}}, dir)
	if c := m.of.Tracks[1].Captures[0]; c.First != c.File.First || c.Last != c.File.Last {
		t.Errorf("without its events, a part is from %d to %d", c.First, c.Last)
	}
}

// Captures with the same number of events and the same bounds may still differ. One that may belong
// to another server is not matched, and does not prevent matching the others.
func TestDifferentEventsAreKept(t *testing.T) {
	files := map[string]string{}
	for rank := range 4 {
		r := repeatedRank(rank)
		files[fmt.Sprintf("1758600000.5-TP-%d.trace.json", rank)] = r.write()
	}
	r := repeatedRank(1)
	other := strings.ReplaceAll(r.write(), `"name": "gemm"`, `"name": "gemv"`)
	other = strings.ReplaceAll(other, "norm", "silu") // more than a truncation could explain
	files["other-1758600000.5-TP-1.trace.json"] = other
	dir := writeFiles(t, files)
	for _, index := range []bool{false, true} {
		if index {
			// With only the index to compare, the index must differ.
			name := filepath.Join(dir, "other-1758600000.5-TP-1.trace.json")
			if err := os.WriteFile(name, []byte(strings.ReplaceAll(other, "DECODE bs=", "DECODE bs=1")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, diags := readAll(t, inputs.Options{Filter: profile.Filter{IndexOnly: index}}, dir)
		if n := codes(diags); len(m.of.Tracks) != 5 || n["capture-repeated"]+n["capture-contained"] > 0 {
			t.Fatalf("index %v: ranks %v, %v", index, rankNames(m), n)
		}
		if n := codes(diags)["rank-overlap"]; n != 1 && !index {
			t.Errorf("%d notices that captures overlap", n)
		}
		if err := m.align(nil, true); err != nil {
			t.Fatal(err)
		}
		if c := clockOf(t, m, "TP2"); c.Why != "matched" || c.Matches != 40 {
			t.Errorf("index %v: clock of TP2: %+v", index, c)
		}
	}
}

// A truncated copy adds nothing to the whole file.
func TestCutOffCopyIsLeftOut(t *testing.T) {
	dir := fakeRanks(t, nil)
	data, err := os.ReadFile(filepath.Join(dir, "1758600000.5-TP-0.trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{9, 2} { // tenths; the names sort before and after
		name := filepath.Join(dir, fmt.Sprintf("%d-1758600000.5-TP-0.trace.json", part))
		if err := os.WriteFile(name, data[:len(data)*part/10], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, diags := readAll(t, inputs.Options{}, dir)
	if n := codes(diags); len(m.of.Tracks) != 4 || n["capture-contained"] != 2 || diags.Worst() != trace.DataLoss {
		t.Errorf("ranks %v, %v", rankNames(m), n)
	}
	for _, f := range m.of.Files {
		if kept := strings.HasPrefix(filepath.Base(f.Name), "1758"); kept != (len(f.Events) > 0) {
			t.Errorf("%s keeps %d events", f.Name, len(f.Events))
		}
	}
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	if c := clockOf(t, m, "TP2"); c.Why != "matched" || c.Matches != 200 {
		t.Errorf("clock of TP2: %+v", c)
	}
}

// A copy with a label duplicates the file without one, which then belongs to that host; two labels
// mean two hosts.
func TestCopiesWithLabels(t *testing.T) {
	r := fakeRank{rank: 0, steps: 5}
	dir := writeFiles(t, map[string]string{"a-TP-0.json": r.write(), "b-TP-0.json": r.write()})
	a, b := filepath.Join(dir, "a-TP-0.json"), filepath.Join(dir, "b-TP-0.json")
	if m, _ := readAll(t, inputs.Options{}, a, "east="+b); len(m.of.Tracks) != 1 || m.of.Tracks[0].Host != "east" {
		t.Errorf("ranks %v", rankNames(m))
	}
	if m, _ := readAll(t, inputs.Options{}, "west="+a, "east="+b); len(m.of.Tracks) != 2 {
		t.Errorf("ranks %v", rankNames(m))
	}
}

// Captures with different time bases cannot be ordered; the one with a known base is the reference.
func TestUnknownBase(t *testing.T) {
	base := fmt.Sprintf(`"baseTimeNanoseconds": %d, `, int64(fakeBase))
	r, other := fakeRank{rank: 0, steps: 5, host: "node0"}, fakeRank{rank: 0, steps: 5, first: 1_234_567}
	files := map[string]string{"b-TP-0.json": r.write(), "a-TP-0.json": strings.ReplaceAll(other.write(), base, "")}
	m, _ := readAll(t, inputs.Options{}, writeFiles(t, files))
	if names := rankNames(m); !slices.Equal(names, []string{"TP0 (node0)", "TP0"}) {
		t.Errorf("ranks %v", names)
	}
	// A truncated file may have its base after the cut.
	late := func(r *fakeRank) string {
		return strings.Replace(strings.ReplaceAll(r.write(), base, ""), "\n]}", "\n], "+strings.TrimSuffix(base, ", ")+"}", 1)
	}
	files["b-TP-0.json"] = late(&r)
	files["a-TP-0.json"] = files["b-TP-0.json"][:len(files["b-TP-0.json"])/2]
	m, diags := readAll(t, inputs.Options{}, writeFiles(t, files))
	if n := codes(diags); len(m.of.Tracks) != 1 || m.of.Tracks[0].Captures[0].File.Meta.Base != fakeBase || n["capture-contained"] != 1 {
		t.Errorf("ranks %v, %v", rankNames(m), n)
	}
	// Without the whole file, it could belong to another process.
	files["b-TP-0.json"] = late(&other)
	if m, _ = readAll(t, inputs.Options{}, writeFiles(t, files)); len(m.of.Tracks) != 2 {
		t.Errorf("ranks %v", rankNames(m))
	}
}

// A file without events, which SGLang writes for a rank whose profiler failed, is not a rank.
func TestEmptyCaptureIsNoRank(t *testing.T) {
	dir := fakeRanks(t, nil)
	empty := filepath.Join(dir, "1758600000.5-TP-0.trace.json")
	for _, text := range []string{`{"traceEvents": []}`,
		`{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 4}, "host_name": "node9", "baseTimeNanoseconds": 1775078550000000000, "traceEvents": []}`} {
		if err := os.WriteFile(empty, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, index := range []bool{false, true} {
			m, diags := readAll(t, inputs.Options{Filter: profile.Filter{IndexOnly: index}}, dir)
			if err := m.align(nil, true); err != nil {
				t.Fatal(err)
			}
			if n := codes(diags); len(m.of.Tracks) != 3 || n["rank-empty"] != 1 {
				t.Errorf("ranks %v, %v", rankNames(m), n)
			}
			if c := m.clocks.Report(m.of); c.Reference != "node0" || len(c.Clocks) != 2 || c.Clocks[1].Why != "matched" {
				t.Errorf("clocks %+v", c)
			}
		}
		files, _ := inputs.Find([]string{empty})
		if _, _, err := Read(files, inputs.Options{}, ranks.Options{}, &trace.Diags{}); !errors.Is(err, ranks.ErrNothing) {
			t.Errorf("alone: %v", err)
		}
	}
}

// Servers captured under one profile id, such as replicas, share no collectives: labels or folders
// tell which ranks belong together.
func TestReplicasOfOneProfile(t *testing.T) {
	var dirs [2]string
	for server := range 2 {
		files := map[string]string{}
		for rank := range 2 {
			r := fakeRank{rank: rank, steps: 30 + server, comms: true, first: int64(server) * 1_000, late: int64(server*rank) * 10_000}
			files[fmt.Sprintf("1758600000.5-TP-%d.trace.json", rank)] = r.write()
		}
		dirs[server] = writeFiles(t, files)
	}
	for _, args := range [][]string{{dirs[0], dirs[1]}, {"n1=" + dirs[0], "n2=" + dirs[1]}} {
		_, tr := mergeAll(t, args...)
		n := 0
		for _, f := range tr.Flows {
			if tr.Syms.Name(f.Name) == "collective" {
				n++
			}
		}
		if n != 30+31 {
			t.Errorf("%v: %d arrows of collectives, want 61", args, n)
		}
	}
}

// This checks jobs and rivals for the facts about each rank.
func TestJobs(t *testing.T) {
	type known struct {
		rank, host, run, role, dir string
		global                     int32
		from                       trace.Time // start of its capture, which lasts 100
	}
	cases := []struct {
		name   string
		ranks  []known
		jobs   []int
		rivals []bool
	}{
		{"TP over two hosts", []known{{rank: "TP0", host: "a"}, {rank: "TP1", host: "a", global: 1}, {rank: "TP2", host: "b", global: 2}},
			[]int{0, 0, 0}, nil},
		{"TP over two hosts, a rank of which is there twice", []known{{rank: "TP0", host: "a"}, {rank: "TP1", host: "b", global: 1}, {rank: "TP1", host: "b", global: 1, from: 50}},
			[]int{0, 0, 0}, []bool{false, false, true}},
		{"a rank twice, later", []known{{rank: "TP0"}, {rank: "TP0", from: 500}}, []int{0, 0}, nil},
		{"two servers by host", []known{{rank: "TP0", host: "a"}, {rank: "TP0", host: "b"}, {rank: "TP1", host: "a", global: 1}, {rank: "TP1", host: "b", global: 1}},
			[]int{0, 1, 0, 1}, nil},
		{"two servers by folder", []known{{rank: "TP0", dir: "a"}, {rank: "TP0", dir: "b"}, {rank: "TP1", dir: "a", global: 1}, {rank: "TP1", dir: "b", global: 1}},
			[]int{0, 1, 0, 1}, nil},
		{"a folder with some copies", []known{{rank: "TP0", dir: "a"}, {rank: "TP0", dir: "b"}, {rank: "TP1", dir: "a", global: 1}},
			[]int{0, 0, 0}, []bool{false, true, false}},
		{"global ranks are not known", []known{{rank: "TP0", host: "a", global: -1}, {rank: "TP0", host: "b", global: -1}}, []int{0, 1}, nil},
		{"ranks are not known", []known{{global: -1}, {global: -1}}, []int{0, 0}, nil},
		{"prefill and decode", []known{{rank: "TP0", role: "prefill"}, {rank: "TP0", role: "decode"}}, []int{0, 1}, nil},
		{"prefill and decode by run", []known{{rank: "TP0", run: "1"}, {rank: "TP1", run: "1", global: 1}, {rank: "TP0", run: "2"}, {rank: "TP1", run: "2", global: 1}},
			[]int{0, 0, 1, 1}, nil},
		{"replicas by DP rank", []known{{rank: "TP0-DP0"}, {rank: "TP0-DP1"}, {rank: "TP1-DP0", global: 1}, {rank: "TP1-DP1", global: 1}},
			[]int{0, 1, 0, 1}, nil},
		{"DP ranks of one world", []known{{rank: "TP0-DP0"}, {rank: "TP1-DP1", global: 1}}, []int{0, 0}, nil},
	}
	for _, c := range cases {
		m := &ranks.Assignment{}
		for _, k := range c.ranks {
			rank, err := trace.ParseRank(k.rank)
			if err != nil && k.rank != "" {
				t.Fatal(err)
			}
			rank.Global = k.global
			f := &inputs.ProcessProfile{Profile: &profile.Profile{Name: filepath.Join(k.dir, "x.json"), Meta: profile.Meta{WorldSize: 4}}, Source: &inputs.Source{Format: chrometrace.Format}}
			m.Tracks = append(m.Tracks, &ranks.Track{Rank: rank, Host: k.host, Run: k.run, Role: k.role,
				Captures: []*ranks.Capture{{File: f, First: k.from, Last: k.from + 100}}})
		}
		jobs := m.Jobs()
		if !slices.Equal(jobs, c.jobs) {
			t.Errorf("%s: jobs %v, want %v", c.name, jobs, c.jobs)
		}
		want := c.rivals
		if want == nil {
			want = make([]bool, len(c.ranks))
		}
		if rivals := m.Conflicts(jobs); !slices.Equal(rivals, want) {
			t.Errorf("%s: rivals %v, want %v", c.name, rivals, want)
		}
	}
}

// Ranks written one after another into one file are separate ranks, and a rank that occurs twice
// counts once.
func TestRanksInOneFile(t *testing.T) {
	write := func(rank int) string {
		r := repeatedRank(rank)
		return r.write()
	}
	for _, test := range []struct {
		what, file string
		ranks      []string
		codes      map[string]int
	}{
		{"two", write(0) + write(2), []string{"TP0", "TP2"}, map[string]int{}},
		{"one twice", write(0) + write(0), []string{"TP0"}, map[string]int{"capture-repeated": 1}},
		{"two, one of them twice", write(0) + write(2) + write(0), []string{"TP0", "TP2"}, map[string]int{"capture-repeated": 1}},
	} {
		m, diags := readAll(t, inputs.Options{}, writeFiles(t, map[string]string{"all.json": test.file}))
		if got := rankNames(m); !slices.Equal(got, test.ranks) || !maps.Equal(codes(diags), test.codes) {
			t.Errorf("%s: ranks %v, want %v; diagnostics %v, want %v", test.what, got, test.ranks, diags.All(), test.codes)
		}
	}
}
