package chain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A server is a TP group that runs steps: hosts launch, devices compute and meet, hosts wait for
// the end of a step. Times are ns.
type server struct {
	seed             uint64
	ranks, steps     int
	segments         int     // from collective to collective, in a step
	compute, noise   float64 // of a segment; spread of it, as a part
	launch, transfer float64 // what a host takes to launch a segment; a collective for its data
	graph            bool    // one launch a step
	slow             int     // rank
	factor, lag      float64 // of its computing, and of its launches
}

// draw is the same number in each run for the same piece of work.
func (s *server) draw(of, rank, step, segment int) float64 {
	return rand.New(rand.NewPCG(s.seed<<8|uint64(of), uint64(rank)<<48|uint64(step)<<16|uint64(segment))).NormFloat64()
}

// play runs the server, and returns what profilers record of it.
func (s *server) play() *profile.Set {
	set := testset.SetOf(trace.NewSymbols(), nil)
	rows, meetings := &testset.RowStream{}, &testset.CollectiveMatches{}
	kernel, launch, wait := set.Syms.Intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), set.Syms.Intern("cudaLaunchKernel"), set.Syms.Intern("cudaStreamSynchronize")
	set.Streams, set.Collectives = []profile.Stream{rows}, meetings
	host, device := make([]float64, s.ranks), make([]float64, s.ranks)
	for r := range s.ranks {
		set.Ranks = append(set.Ranks, fmt.Sprintf("TP%d", r))
		host[r], device[r] = 1e9, 1e9
	}
	correlation := int64(0)
	for step := range s.steps {
		asked := make([]float64, s.ranks)
		for segment := range s.segments {
			point := profile.CollectiveMatch{Name: kernel, Sync: true, Step: profile.StepDecode, GroupSize: int32(s.ranks)}
			come := make([]float64, s.ranks)
			last := 0.
			for r := range s.ranks {
				compute, took := s.compute*(1+s.noise*math.Abs(s.draw(1, r, step, segment))), s.launch*(1+0.2*math.Abs(s.draw(2, r, step, segment)))
				if r == s.slow {
					compute, took = compute*s.factor, took*s.lag
				}
				if !s.graph || segment == 0 {
					host[r] += took
					asked[r] = host[r]
				}
				come[r] = max(device[r], asked[r]+4000) + compute
				last = max(last, come[r])
			}
			for r := range s.ranks {
				device[r] = last + s.transfer
				correlation++
				a := profile.Arrival{Rank: int32(r), Start: trace.Time(come[r]), End: trace.Time(device[r])}
				point.Arrivals = append(point.Arrivals, a)
				event := profile.Event{Start: a.Start, End: a.End, Correlation: correlation, Name: kernel, Rank: int32(r)}
				rows.KernelRows = append(rows.KernelRows, profile.Kernel{Event: event})
				meetings.Kernels = append(meetings.Kernels, profile.Part{Rank: int32(r), Matched: true, Collective: profile.Collective{Time: a.Start, Dur: int64(a.End - a.Start)}})
				event.Start, event.Name = trace.Time(asked[r]), launch
				event.End = event.Start + 3000
				rows.CallRows = append(rows.CallRows, profile.Call{Event: event})
			}
			meetings.Points = append(meetings.Points, point)
		}
		for r := range s.ranks {
			start := host[r]
			host[r] = max(host[r], device[r]+5000)
			rows.CallRows = append(rows.CallRows, profile.Call{Event: profile.Event{Start: trace.Time(start), End: trace.Time(host[r]), Name: wait, Rank: int32(r)}})
			host[r] += 2 * s.launch // what is between steps
		}
	}
	return set
}

// servers are those whose slow ranks are made as fast as the others.
var servers = []struct {
	name string
	server
}{
	{"device, eager", server{ranks: 4, segments: 24, compute: 90e3, noise: 0.02, launch: 30e3, transfer: 12e3, factor: 1.15, lag: 1}},
	{"device, graphs", server{ranks: 8, segments: 30, compute: 60e3, noise: 0.03, launch: 40e3, transfer: 9e3, graph: true, factor: 1.3, lag: 1}},
	{"two ranks", server{ranks: 2, segments: 24, compute: 80e3, noise: 0.01, launch: 20e3, transfer: 10e3, factor: 1.1, lag: 1}},
	{"host", server{ranks: 4, segments: 24, compute: 20e3, noise: 0.05, launch: 50e3, transfer: 10e3, factor: 1, lag: 1.5}},
	{"device, where other hosts are slow as well", server{ranks: 4, segments: 24, compute: 45e3, noise: 0.03, launch: 48e3, transfer: 10e3, factor: 1.4, lag: 1}},
}

// Steps without a slow rank take what they take in the same run without it.
func TestRateOfSavedSteps(t *testing.T) {
	for _, c := range servers {
		t.Run(c.name, func(t *testing.T) {
			seeds := testset.Seeds(t)
			var right, quiet atomic.Int64
			testset.EachSeed(seeds, func(seed uint64) {
				s := c.server
				s.seed, s.steps, s.slow = seed, 40, int(seed)%s.ranks
				slow := Read(s.play())
				s.factor, s.lag = 1, 1
				calm := Read(s.play())
				if slow.Refused != "" || calm.Refused != "" {
					t.Fatal(slow.Refused, calm.Refused)
				}
				change := &Change{Rank: s.slow, Seed: seed}
				recorded, played, _ := slow.Play(change)
				truth, same, _ := calm.Play(change)
				is, would, want := float64(recorded.Total()), float64(played.Total()), float64(truth.Total())
				if saved := is - want; math.Abs(would-want) <= max(0.1*saved, 0.02*is) {
					right.Add(1)
				} else {
					t.Logf("seed %d: %.1f ms, played %.1f, want %.1f", seed, is/1e6, would/1e6, want/1e6)
				}
				if math.Abs(float64(same.Total())-want) <= 0.02*want {
					quiet.Add(1)
				} else {
					t.Logf("seed %d: healthy %.1f ms, played %.1f", seed, want/1e6, float64(same.Total())/1e6)
				}
			})
			testset.Rate(t, "steps without a slow rank: "+c.name, int(right.Load()), len(seeds), 90)
			testset.Rate(t, "steps of healthy ranks: "+c.name, int(quiet.Load()), len(seeds), 90)
		})
	}
}

// Without a change, a chain comes out as it was recorded.
func TestUnchanged(t *testing.T) {
	for _, c := range servers {
		for _, follow := range []bool{false, true} {
			s := c.server
			s.seed, s.steps = 3, 20
			r := Read(s.play())
			if recorded, played, ranks := r.Play(&Change{Rank: -1, HostsFollow: follow}); recorded != played || recorded.Total() == 0 || len(ranks) != s.ranks {
				t.Errorf("%s: recorded %v, played %v, %d ranks", c.name, recorded, played, len(ranks))
			}
		}
	}
}

// What cannot be played is refused, with the reason.
func TestRefused(t *testing.T) {
	s := server{seed: 1, ranks: 2, steps: 10, segments: 10, compute: 50e3, launch: 9e3, transfer: 8e3, factor: 1, lag: 1}
	for _, c := range []struct {
		why  string
		what func(set *profile.Set, m *testset.CollectiveMatches)
	}{
		{"2 of 4 ranks are not in the files, and nobody knows when these came", func(set *profile.Set, m *testset.CollectiveMatches) {
			set.MissingRanks = []profile.MissingRanks{{Seen: 2, Size: 4}}
		}},
		{"no collectives of several ranks were recorded at which all wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points = nil }},
		{"no collectives of several ranks were recorded at which all wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].GroupSize = 4
			}
		}},
		{"nobody knows when the collectives were", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points[3].Blur = math.MaxInt64 }},
		{"40 collectives are too few to tell what is usual", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points = m.Points[:40] }},
		{"collectives run beside others of the same rank, and which of them steps wait for is not known", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].Arrivals[0].Start -= trace.Time(i%2) * 90e3
			}
		}},
		{"only 50 % of the time in collectives is in those at which all ranks were recorded and wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].Sync = i%2 == 0
			}
		}},
	} {
		set := s.play()
		c.what(set, set.Collectives.(*testset.CollectiveMatches))
		if got := Read(set).Refused; got != c.why {
			t.Errorf("got %q, want %q", got, c.why)
		}
	}
}
