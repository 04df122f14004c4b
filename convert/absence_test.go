package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// rankFile is a PyTorch trace of one kernel. A world of 0 means that no header states the number of
// ranks.
func rankFile(rank, world int) string {
	header := ""
	if world > 0 {
		header = fmt.Sprintf(`"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}, `, rank, world)
	}
	return fmt.Sprintf(`{"schemaVersion": 1, %s"baseTimeNanoseconds": 1775078550000000000, "traceEvents": [
		{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": %d.000, "dur": 5.000, "args": {"stream": 7, "correlation": 1}}]}`, header, 1000+rank)
}

func TestAbsences(t *testing.T) {
	const world = 4
	name := func(run string, tp int) string { return fmt.Sprintf("%s-TP-%d.trace.json", run, tp) }
	one := "1758600000.1"
	for _, test := range []struct {
		what  string
		world int
		files map[string]int // rank by name
		ranks string         // the selected ranks
		want  []profile.MissingRanks
	}{
		{what: "whole", world: world, files: map[string]int{name(one, 0): 0, name(one, 1): 1, name(one, 2): 2, name(one, 3): 3}},
		{what: "one missing", world: world, files: map[string]int{name(one, 0): 0, name(one, 1): 1, name(one, 3): 3},
			want: []profile.MissingRanks{{Seen: 3, Size: 4, Missing: []string{"TP2"}}}},
		{what: "one seen of many", world: 64, files: map[string]int{name(one, 1): 1},
			want: []profile.MissingRanks{{Seen: 1, Size: 64, Missing: []string{"TP0", "TP2 to TP63"}}}},
		{what: "a gap that no header tells of", files: map[string]int{name(one, 0): 0, name(one, 3): 3},
			want: []profile.MissingRanks{{Seen: 2, Size: 4, AtLeast: true, Missing: []string{"TP1, TP2"}}}},
		{what: "the last ones of an unknown number", files: map[string]int{name(one, 0): 0, name(one, 1): 1}},
		{what: "one alone of an unknown number", files: map[string]int{name(one, 3): 3}},
		{what: "selected", world: world, files: map[string]int{name(one, 0): 0, name(one, 1): 1}, ranks: "TP0"},
		{what: "two recordings of each", world: 2, files: map[string]int{name(one, 0): 0, name(one, 1): 1, name("1758600060.2", 0): 0, name("1758600060.2", 1): 1}},
		{what: "parts of one world, as far as anybody knows", world: world,
			files: map[string]int{name(one, 0): 0, name(one, 1): 1, name("1758600060.2", 2): 2, name("1758600060.2", 3): 3}},
	} {
		t.Run(test.what, func(t *testing.T) {
			dir := t.TempDir()
			for name, rank := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(rankFile(rank, test.world)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			opt, want := inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}}, ranks.Options{}
			if test.ranks != "" {
				want.Ranks = []naming.Want{{Rank: testset.Rank(t, test.ranks)}}
			}
			inputs, err := inputs.Find([]string{dir})
			if err != nil {
				t.Fatal(err)
			}
			e, err := readEvidence(inputs, opt, want, ReportOptions{}, &trace.Diags{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if len(e.Profiles.Ranks) == 0 || !reflect.DeepEqual(e.Profiles.MissingRanks, test.want) {
				t.Errorf("%v: %+v, want %+v", e.Profiles.Ranks, e.Profiles.MissingRanks, test.want)
			}
		})
	}
}

// However many ranks are missing, the named and the counted ones add up to all of them.
func TestEveryAbsenceIsNamed(t *testing.T) {
	dir := t.TempDir()
	for rank := 0; rank < 100; rank += 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d_trace.json", rank)), []byte(rankFile(rank, 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := inputs.Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	e, err := readEvidence(found, inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}}, ranks.Options{}, ReportOptions{}, &trace.Diags{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a := e.Profiles.MissingRanks[0]
	// 32 odd ranks below 100 are named; the other 18, and ranks 100 to 999, are counted.
	if a.Seen != 50 || a.Size != 1000 || len(a.Missing) != 32 || a.Missing[1] != "rank 3" || a.More != 1000-50-32 {
		t.Errorf("%+v", a)
	}
}

// Reports know which recording options slow down the hosts.
func TestBurdensAreTold(t *testing.T) {
	file := func(rank int, more string) string {
		return strings.Replace(rankFile(rank, 2), "{", "{"+more, 1)
	}
	dir := writeFiles(t, map[string]string{
		"rank0_trace.json": file(0, `"with_stack": 1, "record_shapes": "0", `), "graph_capture_rank_1.json": file(1, `"record_shapes": 1, `),
	})
	found, err := inputs.Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	e, err := readEvidence(found, inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}}, ranks.Options{}, ReportOptions{}, &trace.Diags{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if !slices.Equal(e.Profiles.Recorded, []string{"shapes", "stacks"}) || !e.Profiles.GraphCapture || len(e.Profiles.Ranks) != 2 {
		t.Errorf("recorded %v, graph capture %t, ranks %v", e.Profiles.Recorded, e.Profiles.GraphCapture, e.Profiles.Ranks)
	}
}
