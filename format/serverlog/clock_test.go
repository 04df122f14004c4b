package serverlog

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Timestamps without a date are dated back from the modification time of the file, across two
// midnights around which ranks are out of order. A line without a timestamp is counted.
func TestNoDate(t *testing.T) {
	const line = "Decode batch. #running-req: %d, #token: 10, token usage: 0.01, gen throughput (token/s): 9.00, #queue-req: 0\n"
	text := ""
	for i, stamp := range []string{"[23:59:58 TP0] ", "[00:00:01 TP0] ", "[23:59:59 TP1] ", "[13:00:00 TP0] ", "[04:00:00] ", "", "sglang-1  | [04:00:07 TP0] "} {
		text += stamp + fmt.Sprintf(line, i)
	}
	path := filepath.Join(t.TempDir(), "old.log")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	written := time.Date(2024, 8, 31, 5, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	opt := &format.Options{Syms: set.Syms, Diags: set.Diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}
	if _, err := index(&format.Input{Name: "old.log", Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}, opt); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	var got []string
	for i := range set.List {
		if set.List[i].Metric == series.Running {
			for s := range set.Each(i) {
				got = append(got, fmt.Sprintf("%s %v", time.Unix(0, int64(s.Time)).UTC().Format("01-02 15:04:05"), s.Value))
			}
		}
	}
	slices.Sort(got)
	want := []string{"08-29 23:59:58 0", "08-29 23:59:59 2", "08-30 00:00:01 1", "08-30 13:00:00 3", "08-31 04:00:00 4", "08-31 04:00:07 6"}
	if !slices.Equal(got[max(0, len(got)-len(want)):], want) {
		t.Errorf("%q, want %q", got, want)
	}
	if said := fmt.Sprint(set.Diags.All()); !strings.Contains(said, "left out: 1") || !strings.Contains(said, "2024-08-31") {
		t.Errorf("%s", said)
	}
}

// A collector's timestamp supplies the date, and the time zone of the other timestamp.
func TestNoDateBesideOne(t *testing.T) {
	set, _, _ := readText(t, "old.log", strings.NewReader("2024-08-21T00:00:01.500000000Z stdout F [08:00:01 TP0] Decode batch. #running-req: 1, #token: 10, #queue-req: 0\n"))
	if src := &set.Sources[0]; src.Zone.Name() != "UTC+8" || time.Unix(0, int64(src.First)).UTC().Format(time.DateTime) != "2024-08-21 00:00:01" {
		t.Errorf("%v in %s", src.First, src.Zone.Name())
	}
}

// Libraries of a server whose stamps have no date write one: the others are of that day, and of the one before.
func TestNoDateButInOthers(t *testing.T) {
	set, _, _ := readText(t, "old.log", strings.NewReader("[23:59:58 TP0] Load weight begin.\nINFO 09-11 00:00:03 [weights.py:3] Using weights\n[00:00:04 TP0] Decode batch. #running-req: 1, #token: 10, #queue-req: 0\n"))
	src := &set.Sources[0]
	if first, last := time.Unix(0, int64(src.First)).UTC(), time.Unix(0, int64(src.Last)).UTC(); first.Format("01-02 15:04:05") != "09-10 23:59:58" || last.Format("01-02 15:04:05") != "09-11 00:00:04" || src.Undated {
		t.Errorf("%v to %v, without dates %v", first, last, src.Undated)
	}
}

// Counts of drafts since the start of an engine of vLLM V0 tell how many tokens came out of each step since the line before: of 10
// steps 10 and one draft of 40, and of 10 more 20.
func TestCountedDrafts(t *testing.T) {
	const line = "INFO 07-24 04:00:%02d metrics.py:316] Speculative metrics: Draft acceptance rate: 0.000, System efficiency: 0.2, Number of speculative tokens: 4, Number of accepted tokens: %d, Number of draft tokens%s: %d, Number of emitted tokens%s: %d.\n"
	set, _, _ := readText(t, "v0.log", strings.NewReader(fmt.Sprintf(line, 21, 0, " tokens", 40, " tokens", 10)+fmt.Sprintf(line, 26, 10, "", 80, "", 30)+fmt.Sprintf(line, 31, 10, "", 80, "", 30)))
	var got []float64
	for i := range set.List {
		for x := range set.Each(i) {
			got = append(got, x.Value)
		}
	}
	if want := []float64{1, 2, 0, 25}; !slices.Equal(got, want) {
		t.Errorf("%v, want tokens of steps, and accepted %% of drafts: %v", got, want)
	}
}

// A glog line, with month and day or without, has the accuracy of the container log's timestamp beside it, from the first line on.
func TestGlogBesideZones(t *testing.T) {
	const text = `2026-03-24T12:06:11.850202858+08:00 stderr F [rank1]:[W324 12:06:11.712348372 socket.cpp:472] [c10d] timed out after 600000ms
2026-03-24T12:06:12.850202858+08:00 stderr F [E ProcessGroupNCCL.cpp:828] [Rank 0] Some NCCL operations have failed or timed out.
2026-03-24T12:06:13.86492314+08:00 stderr F [2026-03-24 12:06:13 TP1] Scheduler hit an exception: Traceback (most recent call last):
`
	set, _, _ := readText(t, "a.log", strings.NewReader(text))
	if x := &set.Sources[0]; x.First/1e9 != 1774325171 || x.Last/1e9 != 1774325173 {
		t.Errorf("%d to %d", x.First, x.Last)
	}
}
