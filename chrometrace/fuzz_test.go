package chrometrace

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// fuzzArgs spares the fuzzer from allocating an arena for every input.
var fuzzArgs = trace.NewArgs()

func readFuzzed(opt Options, l parse.Limits, wrap func(io.Reader) io.Reader, data []byte) reading {
	if fuzzArgs.Size() > 32<<20 {
		fuzzArgs = trace.NewArgs()
	}
	opt.Args = fuzzArgs
	return readWith(opt, l, wrap, data)
}

// mostMemory bounds the bytes needed to read an input five times and compare the results: blocks of
// all goroutines, plus some per byte of input.
func mostMemory(size int) uint64 { return 32<<20 + 5000*uint64(size) }

// checkFuzzed checks the invariants that hold for every input.
func checkFuzzed(t *testing.T, data []byte) reading {
	got := readFuzzed(Options{Workers: 1}, parse.Limits{Block: 1 << 16, Record: 1 << 20}, same, data)
	want := got.everything()
	for _, c := range []struct {
		block, workers int
		wrap           func(io.Reader) io.Reader
	}{{1, 1, same}, {33, 2, iotest.OneByteReader}, {200, 2, same}} {
		again := readFuzzed(Options{Workers: c.workers}, parse.Limits{Block: c.block, Record: 1 << 20}, c.wrap, data)
		if d := diff(again.everything(), want); d != "" {
			t.Fatalf("in pieces of %d bytes: %s", c.block, d)
		}
	}
	if got.err != nil {
		return got
	}
	for i, e := range got.Events {
		if int(e.Place.Row()) >= len(got.Rows) || e.Dur < 0 {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	for _, d := range got.diags {
		if d.Pos.File != "f" || d.Pos.Offset < 0 || d.Pos.Offset > int64(len(data)) || d.Count < 1 || d.Msg == "" {
			t.Fatalf("a diagnostic out of place: %+v", d)
		}
	}
	// The events are the same without arguments.
	none := readFuzzed(Options{Workers: 1, Filter: profile.Filter{Args: profile.ArgsNone}}, parse.Usual, same, data)
	launches, work := got.links()
	otherLaunches, otherWork := none.links()
	if len(none.Events) != len(got.Events) || launches != otherLaunches || work != otherWork || len(none.diags) != len(got.diags) {
		t.Fatalf("without arguments there are %d events instead of %d; %v instead of %v", len(none.Events), len(got.Events), none.diags, got.diags)
	}
	return got
}

// checkRead compares valid documents with the reference.
func checkRead(t *testing.T, data []byte) {
	got := checkFuzzed(t, data)
	want, err := reference(data)
	if err != nil || strings.Count(string(data), "[")+strings.Count(string(data), "{") > 128 { // deeper nesting counts as damage
		return
	}
	if got.err != nil {
		if len(want) > 0 {
			t.Fatalf("%v; encoding/json finds %d events", got.err, len(want))
		}
		return
	}
	if d := diff(got.records(), want); d != "" {
		t.Fatalf("against encoding/json: %s%v", d, got.diags)
	}
	for _, d := range got.diags {
		switch d.Code {
		case "trace-no-time", "trace-no-phase", "trace-no-such-phase", "trace-unmatched-end", "trace-clock-zero":
		default:
			if d.Severity >= trace.DataLoss {
				t.Fatalf("nothing is lost, but reported: %v", d)
			}
		}
	}
}

// wholeEvent matches an event that is complete, whatever surrounds it.
var wholeEvent = regexp.MustCompile(`\{"ph": ?"X", ?"cat": ?"\w+", ?"name": ?"\w*", ?"pid": ?\d{1,6}, ?"tid": ?\d{1,6}, ?"ts": ?\d{1,17}, ?"dur": ?\d{1,9}(, ?"args": ?\{\s*\})?\s*\}`)

// checkLost checks that a diagnostic is reported if fewer events are read than exist.
func checkLost(t *testing.T, data []byte) {
	got := checkFuzzed(t, data)
	if got.err != nil || slices.ContainsFunc(got.diags, func(d trace.Diag) bool { return d.Severity >= trace.DataLoss }) {
		return
	}
	if n := len(wholeEvent.FindAll(data, -1)); len(got.Events) < n {
		t.Fatalf("%d events are there, %d are read, and no word: %v", n, len(got.Events), got.diags)
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range dialects {
		f.Add([]byte(c.data))
	}
	f.Add([]byte(kinetoDoc(4)))
	f.Fuzz(func(t *testing.T, data []byte) {
		testinput.BoundMemory(t, mostMemory(len(data)), func() { checkRead(t, data) })
	})
}

func FuzzReadDamaged(f *testing.F) {
	for _, c := range malformed {
		f.Add([]byte(c.data))
	}
	for _, data := range damagedDocs() {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		testinput.BoundMemory(t, 2*mostMemory(len(data)), func() {
			checkRead(t, data)
			checkLost(t, data)
		})
	})
}

// The fuzz corpus passes without the fuzzer, too.
func TestAgainstReference(t *testing.T) {
	for name, data := range damagedDocs() {
		t.Run(name, func(t *testing.T) { checkRead(t, []byte(data)) })
	}
}
