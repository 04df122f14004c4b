package overtime

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/testset"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A server is decode steps one after another: in each, some kernels run, with gaps in which
// the host is late.
type server struct {
	gap     func(at int64, rank int32) int64 // behind a kernel at a time, ns
	rest    func(at int64) int64             // behind a step, ns
	unnamed bool                             // steps are not annotated
}

// length is how long servers are recorded, ns.
const length = 3_000_000_000

// record writes what a profiler would have recorded of four ranks.
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
	return testset.SetOf(syms, []string{"TP0", "TP1", "TP2", "TP3"}, out)
}

func none(int64) int64 { return 0 }

// lateFrom returns a host that is late on a rank between two times, ns; -1 is every rank.
func lateFrom(rank int32, from, to int64) func(int64, int32) int64 {
	return func(at int64, on int32) int64 {
		if (rank < 0 || rank == on) && at >= from && at < to {
			return 250_000
		}
		return 10_000
	}
}

// TestPlantedChangesAreFound looks for the moment at which a host became late, and for what
// is no such moment.
func TestPlantedChangesAreFound(t *testing.T) {
	const at = 1_700_000_000
	for name, c := range map[string]struct {
		server   server
		requests bool // some are under way all the time
		found    bool
		where    []string
	}{
		"one rank":           {server{gap: lateFrom(2, at, length), rest: none}, false, true, []string{"TP2"}},
		"all ranks":          {server{gap: lateFrom(-1, at, length), rest: none}, false, true, []string{"TP0", "TP1", "TP2", "TP3"}},
		"for a while":        {server{gap: lateFrom(2, at, 2_400_000_000), rest: none}, false, true, []string{"TP2"}},
		"requests tell":      {server{gap: lateFrom(2, at, length), rest: none, unnamed: true}, true, true, []string{"TP2"}},
		"nothing tells":      {server{gap: lateFrom(2, at, length), rest: none, unnamed: true}, false, false, nil},
		"nothing happens":    {server{gap: lateFrom(9, 0, 0), rest: none}, false, false, nil},
		"less to do":         {server{gap: lateFrom(9, 0, 0), rest: restFrom(at, 4_000_000)}, false, false, nil},
		"becomes better":     {server{gap: lateFrom(-1, 0, at), rest: none}, false, false, nil},
		"a burst of nothing": {server{gap: lateFrom(9, 0, 0), rest: func(now int64) int64 { return restFrom(at, 400_000_000)(now) * (now % 2) }}, false, false, nil},
	} {
		for seed := range uint64(2) {
			opt := Options{Everything: true}
			if c.requests {
				opt.Requests = &request.Set{Requests: []request.Request{{Start: 0, End: length}, {Start: 0, End: length}}}
			}
			timeline := timelineOf(c.server.record(seed), opt)
			found, judged := timeline.Findings()
			if len(found) > 0 != c.found || judged.N != 4 {
				t.Errorf("%s, seed %d: %d findings of %d devices: %+v", name, seed, len(found), judged.N, timeline.Changes)
				continue
			}
			if !c.found {
				continue
			}
			f, change := found[0], timeline.Changes[0]
			checkEvidence(t, timeline, &f)
			slices.Sort(change.Where)
			if len(found) != 1 || change.What != "GPU busy" || !slices.Equal(change.Where, c.where) || change.First > at+trace.Time(timeline.Bucket) || change.Last < at-trace.Time(timeline.Bucket) {
				t.Errorf("%s, seed %d: %s %v between %d and %d", name, seed, f.Text, change.Where, change.First, change.Last)
			}
			if name == "for a while" && (change.Until < 2_300_000_000 || change.Until > 2_500_000_000 || !strings.Contains(f.Text, "until")) {
				t.Errorf("%s, seed %d: %s", name, seed, f.Text)
			}
		}
	}
}

// restFrom returns a server that has nothing to do behind its steps from a time on, ns.
func restFrom(from, rest int64) func(int64) int64 {
	return func(at int64) int64 {
		if at >= from {
			return rest
		}
		return 0
	}
}

// checkEvidence looks up the number that a finding refers to.
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
