package inputs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/pick"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// selected reads a dump and selects from it. With picks, only the chosen part is read.
func selected(t *testing.T, path string, sel request.Selection, oneClock, picks bool) (*request.Set, error) {
	t.Helper()
	return selectedOf(t, Options{Requests: true}, path, sel, oneClock, picks)
}

func selectedOf(t *testing.T, opt Options, path string, sel request.Selection, oneClock, picks bool) (*request.Set, error) {
	t.Helper()
	if picks {
		opt.Pick = &pick.Wanted{ByID: sel.ByID(), AsRecorded: !oneClock, Slowest: sel.OnlySlowest(),
			Window: func(_, _ trace.Time) (from, to trace.Time, err error) { return sel.From, sel.To, nil }}
	}
	in, err := Load([]Input{{Name: path}}, opt, &trace.Diags{})
	if err != nil {
		t.Fatal(err)
	}
	if oneClock {
		in.OnOneClock()
	} else {
		in.AsRecorded()
	}
	return in.Requests, in.Requests.Select(sel)
}

// told lists the facts about requests, line by line, without table row numbers.
func told(set *request.Set) (lines []string) {
	for i := range set.Requests {
		r := set.Requests[i]
		var procs []string
		for _, p := range set.PartsOf(&r) {
			part := set.Parts[p]
			for _, th := range set.ThreadsOf(&part) {
				procs = append(procs, set.RankName(set.Threads[th].Proc), fmt.Sprint(len(set.StagesOf(th))))
			}
		}
		lines = append(lines, fmt.Sprint(set.Text(r.RID), set.Text(r.Room), set.Text(r.GatewayID), r.Start, r.End, r.Status, set.Syms.Name(r.Reason), r.Flags, r.Metrics, procs))
	}
	for p := range set.Procs {
		lines = append(lines, set.ProcOn(p)+" "+set.RankName(p))
	}
	first, last, _ := set.Bounds()
	return append(lines, fmt.Sprint(first, last, set.Files))
}

// Selecting from a partial read gives the same as selecting from everything.
func TestPickedIsSelected(t *testing.T) {
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		config := simulator.DefaultConfig(uint64(mode) + 7)
		config.Mode, config.Requests, config.Level = mode, 300, 2
		data, _ := testinput.Simulate(t, config)
		path := filepath.Join(t.TempDir(), "otel.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		checkPicked(t, path)
	}
}

func TestPickedOfSharedDumps(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(testinput.Shared(t, "data", "otel"), "[cei]_*.jsonl*"))
	for _, path := range paths {
		checkPicked(t, path)
	}
}

// checkPicked makes many selections from a dump.
func checkPicked(t *testing.T, path string) {
	t.Helper()
	defer func(n int64) { leastPicked = n }(leastPicked)
	leastPicked = 0
	whole, _ := selected(t, path, request.Selection{}, false, false)
	first, last, _ := whole.Bounds()
	oneClock := !whole.HostClocks().Several() // or other requests would align them
	rng := rand.New(rand.NewPCG(uint64(len(whole.Requests)), 1))
	fewer, runs := 0, 0
	for range 2 {
		from := first + trace.Time(rng.Int64N(int64(last-first)))
		r := &whole.Requests[rng.IntN(len(whole.Requests))]
		for _, sel := range []request.Selection{
			{From: from, To: from + trace.Time(rng.Int64N(int64(last-first)/5))},
			{To: from},
			{RIDs: []string{whole.Text(r.RID)}},
			{RIDs: []string{whole.IDs(r)[rng.IntN(len(whole.IDs(r)))]}, From: from},
			{Traces: []string{strings.TrimLeft(whole.TraceID(r), "0")}},
			{Sample: 0.02},
			{Slowest: 1 + rng.IntN(9)},
			{Rooms: slices.DeleteFunc([]string{whole.Text(r.Room)}, func(room string) bool { return room == "" })},
		} {
			want, wantErr := selected(t, path, sel, oneClock, false)
			got, gotErr := selected(t, path, sel, oneClock, true)
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%s: %+v: %v, want %v", path, sel, gotErr, wantErr)
			}
			runs++
			if len(got.Rows) < len(whole.Rows)/2 {
				fewer++
			}
			if g, w := told(got), told(want); !slices.Equal(g, w) {
				t.Errorf("%s: %+v:\n got %d lines %.2000q\nwant %d lines %.2000q", path, sel, len(g), g, len(w), w)
			}
		}
	}
	if fewer < runs/3 {
		t.Errorf("%s: %d of %d runs have read less than half", path, fewer, runs)
	}
}

// Selecting from a file gives the same as from the compressed file and through a pipe, and reads as
// little.
func TestPickedOfPipes(t *testing.T) {
	defer func(n int64) { leastPicked = n }(leastPicked)
	leastPicked = 0
	config := simulator.DefaultConfig(20)
	config.Mode, config.Requests, config.Level = simulator.PDGateway, 200, 1
	data, _ := testinput.Simulate(t, config)
	path := filepath.Join(t.TempDir(), "otel.jsonl")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(data)
	z.Close()
	for name, content := range map[string][]byte{path: data, path + ".gz": packed.Bytes()} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole, _ := selected(t, path, request.Selection{}, true, false)
	first, last, _ := whole.Bounds()
	for _, sel := range []request.Selection{
		{From: first + (last-first)/2, To: first + (last-first)*6/10},
		{RIDs: []string{whole.Text(whole.Requests[7].RID)}},
		{Slowest: 3},
		{Sample: 0.05},
		{RIDs: []string{"none has this"}}, // not found, so everything is read
	} {
		want, wantErr := selected(t, path, sel, true, true)
		zipped, zippedErr := selected(t, path+".gz", sel, true, true)
		piped, pipedErr := selectedOf(t, Options{Requests: true, Stdin: bytes.NewReader(data)}, Stdin, sel, true, true)
		for name, got := range map[string]*request.Set{"gzip": zipped, "pipe": piped} {
			got.Files[0].Name = want.Files[0].Name
			if g, w := told(got), told(want); !slices.Equal(g, w) || len(got.Rows) != len(want.Rows) {
				t.Errorf("%s: %+v: %d rows, want %d:\n got %.2000q\nwant %.2000q", name, sel, len(got.Rows), len(want.Rows), g, w)
			}
		}
		if fmt.Sprint(zippedErr, pipedErr) != fmt.Sprint(wantErr, wantErr) {
			t.Errorf("%+v: %v and %v, want %v", sel, zippedErr, pipedErr, wantErr)
		}
		if wantErr == nil && len(want.Rows) > len(whole.Rows)*2/3 {
			t.Errorf("%+v: %d of %d rows are read", sel, len(want.Rows), len(whole.Rows))
		}
	}
}

// The same holds for the formats of other tools.
func TestPickedOfOtherFormats(t *testing.T) {
	config := simulator.DefaultConfig(21)
	config.Mode, config.Requests, config.Level = simulator.Unified, 60, 1
	data, _ := testinput.Simulate(t, config)
	spans := decodeOTLP(t, data)
	for name, content := range map[string][]byte{"jaeger.json": asJaeger(spans), "zipkin.json": asZipkin(spans)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		checkPicked(t, path)
	}
}
