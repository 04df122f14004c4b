package overtime

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A server runs decode steps one after another. In each, several kernels run, with
// gaps in which the host is late.
type server struct {
	gap     func(at int64, rank int32) int64 // after a kernel at a time, ns
	rest    func(at int64) int64             // after a step, ns
	unnamed bool                             // steps are not annotated
	away    trace.Time                       // from then on, everything is a minute later, since nothing was recorded meanwhile; 0 is never
}

// length is the length of recordings of servers, ns.
const length = 3_000_000_000

// record returns what a profiler would record of four ranks.
func (s *server) record(seed uint64) *profile.Set {
	syms := trace.NewSymbols()
	r := rand.New(rand.NewPCG(seed, 19))
	out := &testset.RowStream{}
	kernel, launch, step := syms.Intern("gemm"), syms.Intern("cudaLaunchKernel"), syms.Intern("step[DECODE bs=4 toks=4]")
	correlation := int64(0)
	for rank := range int32(4) {
		for at := int64(1_000_000); at < length; {
			begin := at
			for range 12 {
				at += s.gap(at, rank) + r.Int64N(30_000)
				took := 150_000 + r.Int64N(100_000)
				correlation++
				e := profile.Event{Start: trace.Time(at - 5000), End: trace.Time(at - 2000), Correlation: correlation, Name: launch, Rank: rank, PID: rank}
				out.CallRows = append(out.CallRows, profile.Call{Event: e})
				e.Start, e.End, e.Name = trace.Time(at), trace.Time(at+took), kernel
				out.KernelRows = append(out.KernelRows, profile.Kernel{Event: e})
				at += took
			}
			if !s.unnamed {
				out.RangeRows = append(out.RangeRows, profile.Range{Event: profile.Event{Start: trace.Time(begin), End: trace.Time(at), Name: step, Rank: rank, PID: rank}})
			}
			at += s.rest(at)
		}
	}
	second := &testset.RowStream{}
	if s.away != 0 {
		out.CallRows, second.CallRows = split(out.CallRows, s.away, func(x *profile.Call) *profile.Event { return &x.Event })
		out.KernelRows, second.KernelRows = split(out.KernelRows, s.away, func(x *profile.Kernel) *profile.Event { return &x.Event })
		out.RangeRows, second.RangeRows = split(out.RangeRows, s.away, func(x *profile.Range) *profile.Event { return &x.Event })
	}
	return testset.SetOf(syms, []string{"TP0", "TP1", "TP2", "TP3"}, out, second)
}

// split returns the rows before a time and the rows from then on, which it delays by a minute.
func split[T any](rows []T, at trace.Time, of func(*T) *profile.Event) (before, after []T) {
	for _, x := range rows {
		if e := of(&x); e.Start >= at {
			e.Start, e.End = e.Start+minute, e.End+minute
			after = append(after, x)
		} else if e.End < at {
			before = append(before, x)
		}
	}
	return before, after
}

const minute = trace.Time(60_000_000_000)

// A difference between two recordings is a change at an unknown time between them.
func TestChangeBetweenRecordings(t *testing.T) {
	s := server{gap: lateFrom(2, lateAt, length), rest: none, away: lateAt}
	timeline := timelineOf(s.record(1), Options{Everything: true})
	found, _ := timeline.Findings()
	if len(found) != 1 {
		t.Fatalf("%+v", timeline.Changes)
	}
	const want = " between 00:00:01.6 and 00:01:01.7, of which nothing is recorded, and stays there"
	if f := &found[0]; !strings.Contains(f.Text, want) || f.Since-f.Within > lateAt+trace.Time(timeline.Bucket) || f.Since+f.Within < lateAt+minute {
		t.Errorf("%s, since %v ± %v", f.Text, f.Since, f.Within)
	}
}

func none(int64) int64 { return 0 }

// lateFrom returns a host that is late on a rank between two times in ns; rank -1 is every rank.
func lateFrom(rank int32, from, to int64) func(int64, int32) int64 {
	return func(at int64, on int32) int64 {
		if (rank < 0 || rank == on) && at >= from && at < to {
			return 250_000
		}
		return 10_000
	}
}

// lateAt is the time at which hosts become late in planted runs, ns.
const lateAt = 1_700_000_000

// plantedChanges are runs, with the ranks on which a change must be found.
var plantedChanges = map[string]struct {
	server   server
	requests bool // some requests are in flight all the time
	where    []string
}{
	"one rank":           {server{gap: lateFrom(2, lateAt, length), rest: none}, false, []string{"TP2"}},
	"all ranks":          {server{gap: lateFrom(-1, lateAt, length), rest: none}, false, []string{"TP0", "TP1", "TP2", "TP3"}},
	"for a while":        {server{gap: lateFrom(2, lateAt, 2_400_000_000), rest: none}, false, []string{"TP2"}},
	"requests tell":      {server{gap: lateFrom(2, lateAt, length), rest: none, unnamed: true}, true, []string{"TP2"}},
	"nothing tells":      {server{gap: lateFrom(2, lateAt, length), rest: none, unnamed: true}, false, nil},
	"nothing happens":    {server{gap: lateFrom(9, 0, 0), rest: none}, false, nil},
	"now and then late":  {server{gap: nowAndThen, rest: none}, false, nil},
	"less to do":         {server{gap: lateFrom(9, 0, 0), rest: restFrom(lateAt, 4_000_000)}, false, nil},
	"becomes better":     {server{gap: lateFrom(-1, 0, lateAt), rest: none}, false, nil},
	"a burst of nothing": {server{gap: lateFrom(9, 0, 0), rest: func(at int64) int64 { return restFrom(lateAt, 400_000_000)(at) * (at % 2) }}, false, nil},
}

// In simulated runs, the moment at which a host became late is found, and nothing if there is none.
func TestRateOfChangesOfGPUs(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, name := range slices.Sorted(maps.Keys(plantedChanges)) {
		c, right := plantedChanges[name], 0
		for _, seed := range seeds {
			opt := Options{Everything: true}
			if c.requests {
				opt.Requests = &request.Set{Requests: []request.Request{{Start: 0, End: length}, {Start: 0, End: length}}}
			}
			timeline := timelineOf(c.server.record(seed), opt)
			found, check := timeline.Findings()
			switch {
			case check.N != 4:
				t.Errorf("%s, seed %d: %d devices were judged", name, seed, check.N)
			case len(found) == 0 && c.where == nil, len(found) == 1 && tells(timeline, c.where) && (name != "for a while" || strings.Contains(found[0].Text, "until")):
				right++
			default:
				t.Logf("%s, seed %d: %+v", name, seed, timeline.Changes)
			}
			for i := range found {
				checkEvidence(t, timeline, &found[i])
			}
		}
		testset.Rate(t, "changes of GPUs: "+name, right, len(seeds), 95)
	}
}

// tells reports whether the first change is the planted one.
func tells(timeline *Timeline, where []string) bool {
	c := &timeline.Changes[0]
	slices.Sort(c.Where)
	return c.What == "GPU busy" && slices.Equal(c.Where, where) && c.First <= lateAt+trace.Time(timeline.Bucket) && c.Last >= lateAt-trace.Time(timeline.Bucket)
}

// nowAndThen is a host that is late for 50 ms at a time, during a third of the time.
func nowAndThen(at int64, rank int32) int64 {
	r := rand.New(rand.NewPCG(uint64(at/50_000_000), uint64(rank)))
	return lateFrom(-1, 0, length*int64(r.IntN(3)/2))(at, rank)
}

// restFrom returns a server that has nothing to do for rest ns after each step, from a time on.
func restFrom(from, rest int64) func(int64) int64 {
	return func(at int64) int64 {
		if at >= from {
			return rest
		}
		return 0
	}
}

// checkEvidence looks up the number that a finding's evidence refers to.
func checkEvidence(t *testing.T, timeline *Timeline, f *finding.Finding) {
	t.Helper()
	r, rows := timeline.ChangeReport(), 0
	column := func(key string) int {
		return slices.IndexFunc(r.Columns, func(c table.Column) bool { return c.Key() == key })
	}
	e := f.Evidence[0]
	for row := range r.Len() {
		if !slices.ContainsFunc(e.Row, func(k finding.Key) bool { return r.Cell(row, column(k.Column)).Text != k.Text }) {
			if rows++; r.Cell(row, column(e.Column)).Share != e.Value {
				t.Errorf("%s is not %v in row %d", e.Column, e.Value, row)
			}
		}
	}
	if e.Table != r.Name() || rows != 1 || !strings.Contains(f.Text, "falls") || f.Cost <= 0 {
		t.Errorf("%d rows of %s, cost %v: %s", rows, e.Table, f.Cost, f.Text)
	}
}

// Devices are busy from some time on if they idle most of the time before, and hardly after it. Idle time before the first work and after
// the last, an even spread, and a short busy end make no such time.
func TestBusyFrom(t *testing.T) {
	const ms = trace.Time(1e6)
	for name, c := range map[string]struct {
		busy string // tenths of each millisecond
		at   trace.Time
	}{
		"a slow start":          {"1000002000999999", 10 * ms},
		"a slow start, ends":    {"0001000002000999999000", 13 * ms},
		"even":                  {"5555555555555555", 0},
		"a few gaps":            {"9909990999999999", 0},
		"a slow start and gaps": {"1000002000990990", 0},
		"short":                 {"100000200010000000000000009", 0},
		"a slow end":            {"9999990000000001", 0},
	} {
		n := trace.Time(len(c.busy))
		grid := load.NewGrid([]request.Interval{{From: 0, To: n * ms}}, time.Millisecond)
		tl := &Timeline{fine: grid, Devices: []Device{{fine: make([]Cell, n)}, {fine: make([]Cell, n)}}}
		for i := range tl.Devices {
			for b, tenths := range c.busy {
				tl.Devices[i].fine[b] = Cell{Recorded: int64(ms), Busy: int64(tenths-'0') * int64(ms) / 10}
			}
		}
		if at, before, busy := tl.BusyFrom(); at != c.at || at != 0 && (before < 0.9 || busy < 0.89) {
			t.Errorf("%s: from %d ms on, %.2f before, %.2f busy; want %d ms", name, at/ms, before, busy, c.at/ms)
		}
	}
}
