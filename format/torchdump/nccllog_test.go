package torchdump

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/analyze/hang"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

func readLog(r io.Reader) (*recorder.InFlight, *series.Set, error) {
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set, metrics := recorder.NewInFlight(syms), series.New(syms, diags)
	in := &format.Input{Name: "stderr.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
	_, err := Log.Index(in, &format.Options{Syms: syms, Diags: diags, Flight: set, Series: metrics})
	metrics.Finish(series.Known{})
	set.Finish(func(int32) trace.Time { return 0 })
	return set, metrics, err
}

// Both ranks of a healthy NCCL test entered 495 collectives; 22 of the lines are joined to fragments of others.
func TestSharedLogs(t *testing.T) {
	file, err := os.Open(testinput.Shared(t, "data", "untraced", "nccl01_2277_healthy.log.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	set, _, err := readLog(z)
	if err != nil || len(set.Dumps) != 2 {
		t.Fatalf("%d dumps, %v", len(set.Dumps), err)
	}
	for rank, d := range set.Dumps {
		if g := d.Groups[0]; d.Rank != int32(rank) || len(d.Groups) != 1 || g.Enqueued != 495 || !g.Ended || g.Size != 2 || g.Name != "0x54fe282d32a87d85" {
			t.Errorf("%+v", d.Groups)
		}
	}
}

// A line that reports a timeout without naming the collective is an event of its rank, which then has a collective in flight, though not
// which.
func TestTimedOut(t *testing.T) {
	const text = `n1:7:9 [3] NCCL INFO comm 0x5599 rank 3 nranks 4 cudaDev 3 busId a1000 - Abort COMPLETE
[rank3]:[E1001 16:06:04.500000000 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 3] Timeout at NCCL work: 8, last enqueued NCCL work: 9, last completed NCCL work: 7.
`
	set, metrics, err := readLog(strings.NewReader(text))
	if err != nil || len(metrics.Instants) != 1 {
		t.Fatalf("%d instants, %v", len(metrics.Instants), err)
	}
	if x := metrics.Instants[0]; x.Kind != series.Timeout || metrics.Places[x.Place].Rank.Global != 3 || x.Line != 2 || x.Time == 0 {
		t.Errorf("%+v", x)
	}
	h := hang.Find(set)
	if words := h.Words(); !strings.Contains(words, "nothing tells which collectives are in flight in 1 rank") {
		t.Error(words)
	}
}

// A failed collective is an event. One that timed out already is, so its failure is not.
func TestFailed(t *testing.T) {
	const (
		late = "[rank3]:[E1001 16:06:03.500000000 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
		fail = "[rank3]:[E1001 16:06:04.500000000 ProcessGroupNCCL.cpp:2252] [PG ID 2 PG GUID 3 Rank 3]  failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: 90, last completed work: 77\n"
	)
	for text, want := range map[string]int{fail: 1, late + fail: 0} {
		_, metrics, err := readLog(strings.NewReader(text))
		if err != nil || len(metrics.Instants) != want {
			t.Fatalf("%d instants, %v", len(metrics.Instants), err)
		}
		if want == 1 && (metrics.Instants[0].Kind != series.Communication || metrics.Syms.Name(metrics.Instants[0].Text) != "PyTorch's watchdog met a failure in collective 78") {
			t.Errorf("%+v", metrics.Instants[0])
		}
	}
}

// A collector's time zone is that of the watchdog's own timestamps; NCCL warnings are events.
func TestTimes(t *testing.T) {
	const text = `2026-03-03T12:11:38.100000000Z [2026-03-03 13:11:38] n1:7:9 [1] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<5> with status=12
2026-03-03T12:11:39.600000000Z [rank3]:[E303 13:11:39.500000000 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
`
	if !logSign.MatchString(text) {
		t.Error("not recognized")
	}
	set, metrics, err := readLog(strings.NewReader(text))
	if err != nil || len(set.Dumps) != 1 || len(metrics.Instants) != 1 {
		t.Fatalf("%d dumps, %d instants, %v", len(set.Dumps), len(metrics.Instants), err)
	}
	if z := &metrics.Sources[0].Zone; z.Name() != "UTC+1" {
		t.Errorf("zone %s", z.Name())
	}
	if text := metrics.Syms.Name(metrics.Instants[0].Text); !strings.Contains(text, "RDMA with 10.0.0.1 failed: retries exceeded") || !strings.HasSuffix(text, " (n1, GPU 1)") {
		t.Error(text)
	}
}

// Damaged logs are read up to the damage.
func TestLogMutants(t *testing.T) {
	dir := t.TempDir()
	if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 1, TP: 4, DP: 1, Steps: 60, Wrong: 1}, torch.NCCLLog); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "stderr.log"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		b := append([]byte(nil), whole[:r.IntN(len(whole))]...)
		for range 1 + r.IntN(30) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.IntN(256))
			}
		}
		if _, _, err := readLog(strings.NewReader(string(b))); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkLog reads lines of collectives.
func BenchmarkLog(b *testing.B) {
	dir := b.TempDir()
	if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 1, TP: 8, DP: 2, Steps: 3000, Wrong: 1}, torch.NCCLLog); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "stderr.log"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, err := readLog(strings.NewReader(string(text))); err != nil {
			b.Fatal(err)
		}
	}
}

// The C++ runtime reports the timeout that ended a rank last, without a time.
func TestLastWords(t *testing.T) {
	const text = `terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG 3 Rank 5] Process group watchdog thread terminated with exception: [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=_ALLGATHER_BASE, NumelIn=19, NumelOut=152, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.
`
	set, _, err := readLog(strings.NewReader(text))
	if err != nil || !isLog([]byte(text)) {
		t.Fatal(err)
	}
	h := hang.Find(set)
	if words := h.Words(); !strings.Contains(words, "of 1 rank, 1 of which wait") {
		t.Error(words)
	}
}
