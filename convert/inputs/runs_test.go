package inputs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// input is an input that lasts from hour to hour.
func input(name string, from, to float64) Run {
	at := func(hours float64) trace.Time { return day*20_000 + trace.Time(hours*float64(time.Hour)) }
	return Run{at(from), at(to), []Input{{Name: name}}}
}

func names(list []Run) string {
	var runs []string
	for _, r := range list {
		runs = append(runs, strings.Join(Names(r.Inputs), " "))
	}
	return strings.Join(runs, " | ")
}

func TestJoin(t *testing.T) {
	for _, test := range []struct {
		timed []Run
		want  string
	}{
		{[]Run{input("a", 1, 2), input("b", 1.5, 3)}, "a b"},
		{[]Run{input("a", 5, 6), input("b", 1, 2)}, "b | a"},
		{[]Run{input("a", 1, 2), input("b", 2.9, 3)}, "a b"},
		{[]Run{input("a", 1, 2), input("b", 3, 4)}, "a | b"},
		{[]Run{input("c", 3, 4), input("a", 0, 8), input("b", 1, 2)}, "c a b"},
		{[]Run{input("a", 20, 26), input("b", 25, 30)}, "a b"},                            // across midnight
		{[]Run{input("a", 1, 20), input("b", 19, 40), input("c", 39, 47)}, "a b | c"},     // longer than a day
		{[]Run{input("a", 1, 25.5), input("b", 10, 11), input("c", 24.5, 25)}, "a b | c"}, // one input alone is
	} {
		if got := names(joinRuns(test.timed)); got != test.want {
			t.Errorf("%v: %s, want %s", test.timed, got, test.want)
		}
	}
}

// Every input is in one run, runs do not overlap, and inputs of different runs are far apart,
// unless a change of day separates them.
func TestJoinKeepsAll(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var timed []Run
		for i := range 1 + rng.IntN(60) {
			from := 400 * rng.Float64()
			timed = append(timed, input(fmt.Sprint(i), from, from+5*rng.Float64()))
		}
		list := joinRuns(timed)
		n := 0
		for i, r := range list {
			n += len(r.Inputs)
			if i == 0 {
				continue
			}
			before := list[i-1]
			if r.From < before.From || r.From-before.To < runsApart && r.From/day == before.From/day {
				t.Fatalf("seed %d: a run from %d follows one from %d to %d", seed, r.From, before.From, before.To)
			}
		}
		if n != len(timed) {
			t.Fatalf("seed %d: %d of %d inputs", seed, n, len(timed))
		}
	}
}

// Unreadable files are reported, and inputs without a time are grouped by folder.
func TestDivideFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.json", "a/2.json", "b/1.json"} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o777)
		// These times are not Unix times: old traces count from system boot.
		text := `{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5, "args": {"stream": 7, "device": 0}}]}`
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	files, err := Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	diags := &trace.Diags{}
	list, err := Runs(files, Options{}, diags)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(names(list), dir+string(filepath.Separator), "")
	if want := "a/1.json a/2.json | b/1.json"; got != want {
		t.Errorf("runs are %s, want %s", got, want)
	}
	if !slices.ContainsFunc(diags.All(), func(d trace.Diag) bool { return d.Code == trace.InputsFound.Code }) {
		t.Errorf("nothing is said about what was found: %v", diags.All())
	}
	if _, err := Runs([]Input{{Name: filepath.Join(dir, "notes.txt")}}, Options{}, &trace.Diags{}); err == nil {
		t.Error("a text is a run")
	}
}
