package convert

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// For two hosts with different clocks, the report finds which rank arrives last at collectives, and
// how long the others wait: from traces, from exports, and from both, which count once.
func TestSyncPointsOfSimulatedRuns(t *testing.T) {
	for _, seed := range testset.Seeds(t) {
		run := record(t, seed+1, nil)
		traces, exports := run.traces(), run.exports()
		for name, paths := range map[string][]string{"traces": {traces}, "exports": {exports}, "both": {traces, exports}} {
			syncPoints, ranks := readSyncPoints(t, ranks.Options{}, paths...)
			last, wait, all := make([]int, len(ranks)), make([]int64, len(ranks)), 0
			for _, x := range syncPoints {
				if !x.Sync || x.Bound < 0 || x.Bound > 10_000 || len(x.Arrivals) != 4 {
					t.Fatalf("seed %d, %s: %+v", seed, name, x)
				}
				all++
				late := 0
				for i, a := range x.Arrivals {
					if a.Start > x.Arrivals[late].Start {
						late = i
					}
				}
				last[x.Arrivals[late].Rank]++
				for _, a := range x.Arrivals {
					wait[a.Rank] += int64(x.Arrivals[late].Start - a.Start)
				}
			}
			if all == 0 {
				t.Fatalf("seed %d, %s: no meetings", seed, name)
			}
			for _, f := range run.torch.Files {
				i := indexOfRank(ranks, f.Rank)
				if i < 0 {
					t.Fatalf("no rank %s among %v", f.Rank, ranks)
				}
				// Clocks are aligned to about a microsecond, so near ties may name the wrong rank
				// as last.
				if d := last[i] - f.LastArrivals; max(d, -d)*20 > all {
					t.Errorf("seed %d, %s: %s came last %d times, want %d of %d", seed, name, f.Rank, last[i], f.LastArrivals, all)
				}
				if d := wait[i] - f.WaitNs; max(d, -d) > 2000*int64(all) {
					t.Errorf("seed %d, %s: %s waited %d ns in %d collectives, want %d", seed, name, f.Rank, wait[i], all, f.WaitNs)
				}
			}
		}
	}
}

// Ranks that were not selected still align the clocks, but are not among the arrivals at collectives.
func TestSyncPointsOfWantedRanks(t *testing.T) {
	run := record(t, 1, nil)
	all, _ := readSyncPoints(t, ranks.Options{}, run.traces())
	some, names := readSyncPoints(t, ranks.Options{Ranks: []naming.Want{{Rank: testset.Rank(t, "TP0")}, {Rank: testset.Rank(t, "TP3")}}}, run.traces())
	if len(names) != 2 || len(some) != len(all) || len(some) == 0 {
		t.Fatalf("%d meetings of %v, %d of all", len(some), names, len(all))
	}
	slices.SortFunc(all, func(a, b profile.CollectiveMatch) int { return cmp.Compare(a.Arrivals[0].Start, b.Arrivals[0].Start) })
	slices.SortFunc(some, func(a, b profile.CollectiveMatch) int { return cmp.Compare(a.Arrivals[0].Start, b.Arrivals[0].Start) })
	for i, x := range some {
		whole := all[i].Arrivals
		want := []profile.Arrival{{Rank: 0, Start: whole[0].Start, End: whole[0].End}, {Rank: 1, Start: whole[3].Start, End: whole[3].End}}
		if !slices.Equal(x.Arrivals, want) {
			t.Fatalf("%+v, want %+v", x.Arrivals, want)
		}
	}
	if alone, _ := readSyncPoints(t, ranks.Options{Ranks: []naming.Want{{Rank: testset.Rank(t, "TP0")}}}, run.traces()); len(alone) != 0 {
		t.Errorf("one rank meets itself %d times", len(alone))
	}
}

func readSyncPoints(t *testing.T, want ranks.Options, globs ...string) ([]profile.CollectiveMatch, []string) {
	t.Helper()
	var paths []string
	for _, glob := range globs {
		found, err := filepath.Glob(glob)
		if err != nil || len(found) == 0 {
			t.Fatal(glob, err)
		}
		paths = append(paths, found...)
	}
	files, err := inputs.Find(paths)
	if err != nil {
		t.Fatal(err)
	}
	var diags trace.Diags
	e, err := readEvidence(files, inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}}, want, ReportOptions{MatchCollectives: true}, &diags)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var list []profile.CollectiveMatch
	for x := range e.Profiles.Matches(true) {
		x := *x
		x.Arrivals = slices.Clone(x.Arrivals)
		list = append(list, x)
	}
	return list, e.Profiles.Ranks
}

// indexOfRank finds the rank with the TP rank of the given one.
func indexOfRank(ranks []string, of string) int {
	for i, name := range ranks {
		if len(name) >= 3 && name[:3] == of[:3] {
			return i
		}
	}
	return -1
}

// A group of unknown size is complete if all ranks of a job whose size is known entered, and may have more ranks otherwise.
func TestGroupsOfAllRanks(t *testing.T) {
	const sized = `"Group size": 4, `
	dir := fakeRanks(t, nil)
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(sized)) {
			t.Fatalf("%s has no %s", name, sized)
		}
		if err := os.WriteFile(name, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(sized), nil), []byte(`, "Process Group Ranks": "[0, 1, 2, 3]"`), nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[int]int32{4: 4, 3: -1} {
		list, _ := readSyncPoints(t, ranks.Options{}, names[:n]...)
		if len(list) == 0 {
			t.Errorf("%d ranks: nothing is matched", n)
		}
		for _, x := range list {
			if x.GroupSize != want {
				t.Fatalf("%d ranks: a group of %d, want %d", n, x.GroupSize, want)
			}
		}
	}
}
