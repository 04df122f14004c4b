package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// syncPointsOf is a set of ranks that meet.
type syncPointsOf struct {
	*profile.Set
	met *testset.CollectiveMatches // the collectives of the set
}

func newSyncPoints(ranks ...string) syncPointsOf {
	met := &testset.CollectiveMatches{}
	return syncPointsOf{&profile.Set{Syms: trace.NewSymbols(), Ranks: ranks, Collectives: met}, met}
}

// meet adds an all-reduce of 1000 elements of two bytes. The arguments are start and
// duration in ns of rank 0, 1, ...; a start of -1 means that the rank was absent.
func (s syncPointsOf) meet(startsAndDurations ...int64) *profile.CollectiveMatch {
	x := profile.CollectiveMatch{
		Name: s.Syms.Intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
		Op:   s.Syms.Intern("allreduce"), Dtype: s.Syms.Intern("BFloat16"), Group: s.Syms.Intern("tp"),
		In: 1000, Out: 1000, GroupSize: int32(len(s.Ranks)), Sync: true,
	}
	for i := 0; i < len(startsAndDurations); i += 2 {
		start, dur := trace.Time(startsAndDurations[i]), trace.Time(startsAndDurations[i+1])
		if start >= 0 {
			x.Arrivals = append(x.Arrivals, profile.Arrival{Rank: int32(i / 2), Start: start, End: start + dur})
		}
	}
	s.met.Points = append(s.met.Points, x)
	return &s.met.Points[len(s.met.Points)-1]
}

// threeRanks meet six times: c comes last twice, a once, a and b together once. Once
// they need not wait, and once one rank has left before another comes.
func threeRanks() syncPointsOf {
	s := newSyncPoints("a", "b", "c", "alone")
	s.meet(100, 50, 110, 40, 130, 20)
	s.meet(200, 50, 210, 40, 240, 10)
	s.meet(350, 15, 320, 45, 310, 55)
	s.meet(430, 30, 430, 30, 410, 50)
	x := s.meet(500, 5, 510, 90, 520, 80)
	x.Sync, x.Op = false, s.Syms.Intern("broadcast")
	s.meet(100_000, 10, 200_000, 10, 200_000, 10)
	return s
}

func TestCollectives(t *testing.T) {
	c := Measure(threeRanks().Set, 0, 0)
	var got []string
	for _, r := range c.Ranks {
		got = append(got, fmt.Sprint(r))
	}
	want := []Rank{
		// Medians are 110, 210, 320, 430.
		{Rank: "a", SyncPoints: 5, Sync: 4, Last: 1, LateP50: -10, LateP99: 30, Took: 145, Wait: 70, Blame: 70, Transfer: 75, rankIndex: 0},
		{Rank: "b", SyncPoints: 5, Sync: 4, Last: 0, LateP50: 0, LateP99: 0, Took: 155, Wait: 80, Blame: 0, Transfer: 75, rankIndex: 1},
		{Rank: "c", SyncPoints: 5, Sync: 4, Last: 2, LateP50: -10, LateP99: 30, Took: 135, Wait: 60, Blame: 120, Transfer: 75, rankIndex: 2},
	}
	for i := range want {
		if i >= len(got) || got[i] != fmt.Sprint(want[i]) {
			t.Errorf("rank %d: %v\nwant %v", i, got[i], want[i])
		}
	}
	if waits := [][]int64{{0, 0, 70}, {30, 0, 50}, {40, 0, 0}}; !reflect.DeepEqual(c.WaitMatrix(), waits) {
		t.Errorf("waits %v, want %v", c.WaitMatrix(), waits)
	}
	if want := (collectiveCounts{all: 5, Sync: 4, partial: 4, impossible: 1}); c.Counts != want {
		t.Errorf("%+v, want %+v", c.Counts, want)
	}
	if len(c.Kinds) != 2 {
		t.Fatalf("kinds %+v", c.Kinds)
	}
	k := c.Kinds[0]
	// The fourth rank of the group was never recorded: it may have come last, and then the data moved faster.
	if k.Name() != "allreduce" || k.Kernel != "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" || k.Bytes != 2000 || k.N != 4 || k.Ranks != 3 ||
		k.Transfer.P50 != 15 || k.Transfer.Max != 30 || k.Last != "c" || k.LastN != 2 || k.Whole != 0 || k.BusBandwidth() != 0 {
		t.Errorf("all-reduce: %+v, %v GB/s", k, k.BusBandwidth())
	}
	if k.Wait.N != 8 || k.Wait.P50 != 30 || k.Wait.Total != 210 {
		t.Errorf("all-reduce: waits %+v", k.Wait)
	}
	if k.Op = ""; k.Name() != "AllReduce_Sum_bf16_RING_LL" {
		t.Errorf("in a graph it is called %s", k.Name())
	}
	if k := c.Kinds[1]; k.Name() != "broadcast" || k.Sync != 0 || k.Wait.N != 0 || k.Transfer.P50 != 5 || k.BusBandwidth() != 0 {
		t.Errorf("broadcast: %+v, %v GB/s", k, k.BusBandwidth())
	}
}

// A time window selects the sync points that overlap it.
func TestCollectivesInWindow(t *testing.T) {
	s := threeRanks()
	for _, c := range []struct {
		from, to trace.Time
		want     int
	}{{0, 0, 5}, {151, 0, 4}, {150, 0, 5}, {0, 199, 1}, {0, 200, 2}, {260, 309, 0}} {
		if got := Measure(s.Set, c.from, c.to).Counts.all; got != c.want {
			t.Errorf("[%d, %d]: %d meetings, want %d", c.from, c.to, got, c.want)
		}
	}
}

// Where the clocks of hosts are unknown, they do not affect the result: ranks leave
// together, so that the rank with the longest kernel came first.
func TestCollectivesWithoutClocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one, two := newSyncPoints("a", "b", "c", "d"), newSyncPoints("a", "b", "c", "d")
	skew := []int64{0, 0, 5_000_000, -3_000_000}
	for i := range int64(200) {
		end := (i + 1) * 1_000_000
		var a, b []int64
		for rank := range 4 {
			dur := 1 + r.Int64N(500_000)
			a = append(a, end-dur, dur)
			b = append(b, 10_000_000+end-dur+skew[rank], dur)
		}
		one.meet(a...)
		two.meet(b...).Bound = []int64{-1, endSpread + 1}[i%2]
		if i%2 == 1 {
			two.met.Points[i].Bound = 10_000_000
		}
	}
	want, got := Measure(one.Set, 0, 0), Measure(two.Set, 0, 0)
	if !reflect.DeepEqual(want.Ranks, got.Ranks) || !reflect.DeepEqual(want.WaitMatrix(), got.WaitMatrix()) || !reflect.DeepEqual(want.Kinds, got.Kinds) {
		t.Errorf("by clocks %+v\nwithout %+v", want.Ranks, got.Ranks)
	}
	if got.Counts.byDuration != 200 || want.Counts.byDuration != 0 {
		t.Errorf("%d and %d are ordered by durations", got.Counts.byDuration, want.Counts.byDuration)
	}
	if notes := got.rankReport().Footnotes; len(notes) != 1 || !strings.HasPrefix(notes[0], "at 200 of 200 collectives, the clocks") {
		t.Errorf("footnotes %q", notes)
	}
}

// Every wait is attributed to one rank, unless several came last together.
func TestWaitsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := newSyncPoints("a", "b", "c", "d", "e")
	for i := range int64(500) {
		var x []int64
		end := (i + 1) * 10_000
		for range 5 {
			start := end - 1 - r.Int64N(2000)
			if r.IntN(4) == 0 {
				start = -1
			}
			x = append(x, start, end-start)
		}
		if slices.Index(x, -1) < 0 || i > 3 {
			s.meet(x...)
		}
		if last := &s.met.Points[len(s.met.Points)-1]; len(last.Arrivals) < 2 {
			s.met.Points = s.met.Points[:len(s.met.Points)-1]
		}
	}
	c := Measure(s.Set, 0, 0)
	for i, r := range c.Ranks {
		own, others := int64(0), int64(0)
		for k := range c.Ranks {
			own += c.WaitMatrix()[i][k]
			others += c.WaitMatrix()[k][i]
		}
		if own > r.Wait || others != r.Blame || r.Wait > r.Took || r.Transfer > r.Took {
			t.Errorf("%s waits %d for others, %d in all of %d; is waited for %d, and blamed for %d", r.Rank, own, r.Wait, r.Took, others, r.Blame)
		}
	}
}

// Replicas with equally named groups are kept apart.
func TestKindsOfReplicas(t *testing.T) {
	s := newSyncPoints("TP0-DP0", "TP1-DP0", "TP0-DP1", "TP1-DP1")
	for i := range int64(20) {
		at := i * 1000
		s.meet(at, 9, at+1, 8, -1, 0, -1, 0)
		s.meet(-1, 0, -1, 0, at+2, 9, at, 11)
	}
	var got []string
	for _, k := range Measure(s.Set, 0, 0).Kinds {
		got = append(got, fmt.Sprint(k.Group, " ", k.First, " ", k.N, " ", k.Last, " ", k.LastN))
	}
	if want := []string{"tp TP0-DP1 20 TP0-DP1 20", "tp TP0-DP0 20 TP1-DP0 20"}; !slices.Equal(got, want) {
		t.Errorf("kinds %q, want %q", got, want)
	}
}

// Bus bandwidths match what nccl-tests prints for these sizes and times.
func TestBusBandwidth(t *testing.T) {
	s := newSyncPoints(make([]string, 8)...)
	for _, c := range []struct {
		op, dtype string
		in, out   int64
		bytes     int64
		busbw     float64 // GB/s, if it takes 1000 ns
	}{
		{"allreduce", "Float", 1000, 1000, 4000, 7},
		{"allreduce_coalesced", "Half", 1000, 1000, 2000, 3.5},
		{"_allgather_base", "BFloat16", 1000, 8000, 16000, 14},
		{"_reduce_scatter_base", "Float8_e4m3fn", 8000, 1000, 8000, 7},
		{"all_to_allv", "Byte", 8000, 8000, 8000, 7},
		{"broadcast", "Long", 1000, 1000, 8000, 8},
		{"reduce", "Double", 1000, 1000, 8000, 8},
		{"allgather", "bytes", 1000, -1, 8000, 7}, // exports have NCCL's count: the part of one rank
		{"reducescatter", "bytes", 1000, -1, 8000, 7},
		{"allreduce", "bytes", 8000, -1, 8000, 14},
		{"allreduce", "QInt8", 1000, 1000, -1, 0}, // a type of unknown size
		{"allreduce", "Float", -1, -1, -1, 0},
		{"fused_something", "Float", 1000, 1000, 4000, 0},
	} {
		x := s.meet(slices.Repeat([]int64{0, 1000}, 8)...)
		x.Op, x.Dtype, x.In, x.Out = s.Syms.Intern(c.op), s.Syms.Intern(c.dtype), c.in, c.out
		k := Measure(&profile.Set{Syms: s.Syms, Ranks: s.Ranks, Collectives: &testset.CollectiveMatches{Points: []profile.CollectiveMatch{*x}}}, 0, 0).Kinds[0]
		if k.Bytes != c.bytes || k.BusBandwidth() != c.busbw {
			t.Errorf("%s of %s: %d bytes, %v GB/s, want %d, %v", c.op, c.dtype, k.Bytes, k.BusBandwidth(), c.bytes, c.busbw)
		}
	}
}

// Collectives with an unseen rank reveal nothing about links: the transfer of 60 ns may have been
// a wait for that rank. In the others, each of three ranks sends 4/3 of 2000 bytes in 20 ns.
func TestBusBandwidthOfWholeGroups(t *testing.T) {
	s := newSyncPoints("a", "b", "c")
	for start := range int64(4) {
		s.meet(1000*start, 80, 1000*start+20, 60, -1, 0)
	}
	partial := Measure(s.Set, 0, 0)
	for start := range int64(3) {
		s.meet(9000+1000*start, 40, 9010+1000*start, 30, 9020+1000*start, 20)
	}
	c := Measure(s.Set, 0, 0)
	if k := partial.Kinds[0]; k.Whole != 0 || k.BusBandwidth() != 0 {
		t.Errorf("seen on two of three ranks: %+v, %v GB/s", k, k.BusBandwidth())
	}
	if k := c.Kinds[0]; len(c.Kinds) != 1 || k.Whole != 3 || k.Transfer.P50 != 60 || math.Abs(k.BusBandwidth()-400.0/3) > 1e-9 {
		t.Errorf("%+v, %v GB/s", c.Kinds, k.BusBandwidth())
	}
	if out := testset.Text(t, c.kindReport(), table.FormatText, table.Style{Width: 200}); !strings.Contains(out, "at 4 of 7 collectives, not all ranks of the group were seen") {
		t.Error(out)
	}
}

// Ranks whose recordings begin later are absent from some sync points of their peer
// group. Ranks that often meet without others are a peer group of their own.
func TestPeerGroups(t *testing.T) {
	s := newSyncPoints("a", "b", "c", "d")
	for i := range int64(100) {
		at := i * 1000
		switch {
		case i < 5:
			s.meet(at, 9, at, 9, at, 9, -1, 0)
		case i < 60:
			s.meet(at, 9, at, 9, at, 9, at, 9)
		default:
			s.meet(at, 9, at, 9)
		}
	}
	var got []string
	for _, c := range Measure(s.Set, 0, 0).peerGroups {
		got = append(got, fmt.Sprint(c.ranks, len(c.gathering.SyncPoints)))
	}
	if want := "[[0 1 2 3] 60 [0 1] 40]"; fmt.Sprint(got) != want {
		t.Errorf("crowds %v, want %v", got, want)
	}
}

// Programs read these tables: columns are only ever added.
func TestCollectiveReports(t *testing.T) {
	want := []string{
		"rank,all,n,last,last_share,late_p50_ns,late_p99_ns,took_ns,wait_ns,wait_share,transfer_ns,blame_ns",
		"a,5,4,1,0.250000,-10,30,145,70,0.482759,75,70",
		"rank,for,wait_ns,share",
		"a,c,70,0.368421",
		"collective,kernel,dtype,size_bytes,group,first_rank,ranks,seen,n,sync,took_ns,transfer_p50_ns,transfer_p99_ns,wait_p50_ns,wait_p99_ns,last,last_share,busbw",
		"allreduce,ncclDevKernel_AllReduce_Sum_bf16_RING_LL,BFloat16,2000,tp,a,4,3,4,4,435,15,30,30,40,c,0.500000,",
	}
	var got []string
	c := Measure(threeRanks().Set, 0, 0)
	for _, r := range c.Reports() {
		got = append(got, strings.SplitN(testset.CSV(t, r), "\n", 3)[:2]...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("reports\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	notes := []string{
		"at 4 of 4 collectives, not all ranks of the group were seen: the last rank is the last of those seen",
		"at 1 of 5 collectives, ranks do not wait for each other, or it is unknown whether they do, as in a broadcast or a dispatch: only their transfer counts, by kind",
		"left out: 1 of 6 collectives, which a rank left before the last one arrived, according to their clocks",
	}
	if got := c.rankReport().Footnotes; !slices.Equal(got, notes) {
		t.Errorf("footnotes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(notes, "\n"))
	}
}

// Up to three peers are named, without the rank that they wait for.
func TestPeerGroupPeers(t *testing.T) {
	for _, c := range []struct {
		ranks int
		whole bool
		want  string
	}{{2, false, "TP0"}, {3, false, "TP0 and TP2"}, {4, false, "TP0, TP2 and TP3"}, {2, true, ""}, {5, false, ""}} {
		x := &peerGroup{ranks: make([]int32, c.ranks), gathering: &straggler.SyncSamples{}, whole: c.whole}
		for i := range c.ranks {
			x.gathering.Names = append(x.gathering.Names, fmt.Sprintf("TP%d", i))
		}
		if got := x.peers("TP1"); got != c.want {
			t.Errorf("TP1 of %d meets %q, want %q", c.ranks, got, c.want)
		}
	}
	s := straggler.Straggler{Name: "TP1", Group: "2 ranks", Peers: "TP0", What: "collectives", Verb: "arrives",
		Lateness: straggler.Lateness{SyncPoints: 9, Last: 8, LastMean: 5000, LostShare: 0.5}}
	const want = "TP1 arrives last in 8 of 9 collectives with TP0, 5 us late on average; the other ranks lose 50 % of the time between collectives"
	if got := s.Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Transfers stall if a few take far longer than others of the same kind and size with all ranks
// present, and these make up more than half of the transfer time.
func TestTransfersStandStill(t *testing.T) {
	const ms = 1_000_000
	kind := func(bytes int64, whole int, long int64) Kind { // 50 collectives of 1 ms each, except for one
		k := Kind{Op: "allreduce", Bytes: bytes, GroupSize: 8, N: 50, Whole: whole}
		k.Transfer.N, k.Transfer.P50, k.Transfer.Max, k.Transfer.Total = 50, ms, long, 49*ms+long
		return k
	}
	for name, c := range map[string]struct {
		kinds []Kind
		want  string
	}{
		"one stands":      {[]Kind{kind(1<<20, 50, 100*ms)}, "66 % of what transfers take is beyond the median of their kind and size, 100 ms at most instead of 1 ms, though all ranks had come, as if a link or the network stood still"},
		"a little longer": {[]Kind{kind(1<<20, 50, 3*ms)}, ""},
		"less than half":  {[]Kind{kind(1<<20, 50, 40*ms)}, ""},
		"some are absent": {[]Kind{kind(1<<20, 49, 100*ms)}, ""},
		"unknown sizes":   {[]Kind{kind(-1, 50, 100*ms)}, ""},
	} {
		if got := (&Collectives{Kinds: c.kinds}).Stood(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
