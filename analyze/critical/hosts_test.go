package critical

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A plantedStall is a time in a decode step during which TP0 waits for TP1, which is late.
type plantedStall struct {
	from, until trace.Time
	host        bool // its host allocates memory and launches late; else its device computes longer
}

// profiled writes what profilers would record of two ranks in the decode steps of an engine: a kernel and
// a collective in each step. TP1 comes late to the collective, in every other step because of its host.
func profiled(r *replay.Run) (*profile.Set, []plantedStall) {
	set := testset.SetOf(trace.NewSymbols(), []string{"TP0", "TP1"})
	rows, meetings := &testset.RowStream{}, &testset.CollectiveMatches{}
	set.Streams, set.Collectives = []profile.Stream{rows}, meetings
	gemm, reduce := set.Syms.Intern("gemm"), set.Syms.Intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
	launch, malloc := set.Syms.Intern("cudaLaunchKernel"), set.Syms.Intern("cudaMalloc")
	var list []plantedStall
	correlation := int64(0)
	for k, st := range r.Engines[0].Steps {
		if st.Kind != replay.Decode {
			continue
		}
		const us = trace.Time(1000)
		late := us * trace.Time(300+k%7*100)
		come := st.Start + 3000*us
		p := plantedStall{come, come + late, k%2 == 0}
		list = append(list, p)
		point := profile.CollectiveMatch{Name: reduce, Sync: true, Step: profile.StepDecode, GroupSize: 2}
		for rank := range int32(2) {
			device := func(name trace.Sym, asked, from, until trace.Time) {
				correlation++
				e := profile.Event{Name: name, Rank: rank, Start: from, End: until, Correlation: correlation}
				rows.KernelRows = append(rows.KernelRows, profile.Kernel{Event: e})
				e.Name, e.Start, e.End = launch, asked, asked+3*us
				rows.CallRows = append(rows.CallRows, profile.Call{Event: e})
			}
			start, asked, computed := come, st.Start+200*us, come
			if rank == 1 {
				start += late
				if computed = start; p.host {
					computed, asked = come, start-10*us
					rows.CallRows = append(rows.CallRows, profile.Call{Event: profile.Event{Name: malloc, Rank: rank, Start: come - 100*us, End: asked - us}})
				}
			}
			device(gemm, st.Start+100*us, st.Start+110*us, computed)
			device(reduce, asked, start, come+late+50*us)
			point.Arrivals = append(point.Arrivals, profile.Arrival{Rank: rank, Start: start, End: come + late + 50*us})
		}
		meetings.Points = append(meetings.Points, point)
	}
	return set, list[1:] // the time before the first one is unknown
}

// Waits in collectives are attributed to the late rank, and to what its host was doing, to the ns.
func TestHosts(t *testing.T) {
	for seed := range uint64(3) {
		c := testset.Calm(seed)
		c.Mode = simulator.Unified
		c.Unified = simulator.Parallel{TP: 2, PP: 1, DP: 1}
		s, _ := testset.Simulated(t, c)
		r := replay.Read(s)
		set, stalls := profiled(r)
		hosts := ReadHosts(r, set)
		checked := 0
		for i := range s.Requests {
			path := PathOf(r, hosts, i)
			if path == nil {
				continue
			}
			sum, byHost, byDevice := int64(0), int64(0), int64(0)
			for _, p := range path.Parts {
				sum += p.Ns
				switch {
				case p.Host == "":
				case p.At != "TP1":
					t.Errorf("seed %d, request %d: waits for %s", seed, i, p.At)
				case strings.Contains(p.Host, "cudaMalloc"):
					byHost += p.Ns
				case p.Host == computing:
					byDevice += p.Ns
				default:
					t.Errorf("seed %d, request %d: host in %q", seed, i, p.Host)
				}
			}
			wantHost, wantDevice := waitedIn(s, i, stalls)
			if sum != path.E2E || byHost != wantHost || byDevice != wantDevice {
				t.Fatalf("seed %d, request %d: %d of %d ns; %d and %d ns in collectives, want %d and %d", seed, i, sum, path.E2E, byHost, byDevice, wantHost, wantDevice)
			}
			if byHost > 0 && byDevice > 0 {
				checked++
			}
		}
		if checked < 50 {
			t.Errorf("seed %d: %d requests waited", seed, checked)
		}
	}
}

// waitedIn returns how long a request waited in planted stalls between its first and its last token.
func waitedIn(s *request.Set, i int, stalls []plantedStall) (byHost, byDevice int64) {
	first, last := trace.Time(0), trace.Time(0)
	for _, p := range s.PartsOf(&s.Requests[i]) {
		lead := s.Lead(&s.Parts[p])
		if lead == request.None {
			continue
		}
		s.EachStage(s.StagesOf(lead), func(k int) {
			if row := &s.Rows[k]; row.Means.GivesToken() {
				if first == 0 {
					first = row.End
				}
				last = max(last, row.End)
			}
		})
	}
	for _, x := range stalls {
		switch {
		case x.from < first || x.until > last:
		case x.host:
			byHost += int64(x.until - x.from)
		default:
			byDevice += int64(x.until - x.from)
		}
	}
	return byHost, byDevice
}

// Profiles of one rank, or of another time, contain no such waits, and the report says so.
func TestHostsMissing(t *testing.T) {
	c := testset.Calm(1)
	c.Mode = simulator.Unified
	c.Unified = simulator.Parallel{TP: 2, PP: 1, DP: 1}
	s, _ := testset.Simulated(t, c)
	r := replay.Read(s)
	set, _ := profiled(r)
	for i := range set.Collectives.(*testset.CollectiveMatches).Points {
		for k := range 2 {
			a := &set.Collectives.(*testset.CollectiveMatches).Points[i].Arrivals[k]
			a.Start, a.End = a.Start-1e15, a.End-1e15
		}
	}
	other := testset.SetOf(trace.NewSymbols(), []string{"TP0"})
	for _, x := range []struct {
		set  *profile.Set
		want string
	}{{set, "no collective in the profiles is in a step"}, {other, "that takes all ranks of a server"}} {
		notes := SumSlow(r, ReadHosts(r, x.set)).Report().Footnotes
		if text := strings.Join(notes, "\n"); !strings.Contains(text, x.want) {
			t.Errorf("%q, want %q", text, x.want)
		}
	}
}
