package testset

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A TPServer is a TP group that runs steps: hosts launch, devices compute and meet, hosts wait for the end of a step. Times
// are ns.
type TPServer struct {
	Seed             uint64
	Ranks, Steps     int
	Segments         int     // per step, each up to a collective
	Compute, Noise   float64 // of a segment; Noise is its relative spread
	Launch, Transfer float64 // of a host per segment; of the data of a collective
	Graph            bool    // one launch per step
	Slow             int     // rank
	Factor, Lag      float64 // of its computing time, and of its launches
}

// draw returns the same number in each run for the same piece of work.
func (s *TPServer) draw(of, rank, step, segment int) float64 {
	return rand.New(rand.NewPCG(s.Seed<<8|uint64(of), uint64(rank)<<48|uint64(step)<<16|uint64(segment))).NormFloat64()
}

// Play runs the server, and returns what profilers record of it.
func (s *TPServer) Play() *profile.Set {
	set := SetOf(trace.NewSymbols(), nil)
	rows, meetings := &RowStream{}, &CollectiveMatches{}
	kernel, launch, wait := set.Syms.Intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), set.Syms.Intern("cudaLaunchKernel"), set.Syms.Intern("cudaStreamSynchronize")
	set.Streams, set.Collectives = []profile.Stream{rows}, meetings
	host, device := make([]float64, s.Ranks), make([]float64, s.Ranks)
	for r := range s.Ranks {
		set.Ranks = append(set.Ranks, fmt.Sprintf("TP%d", r))
		host[r], device[r] = 1e9, 1e9
	}
	correlation := int64(0)
	for step := range s.Steps {
		asked := make([]float64, s.Ranks)
		for segment := range s.Segments {
			point := profile.CollectiveMatch{Name: kernel, Sync: true, Step: profile.StepDecode, GroupSize: int32(s.Ranks)}
			come := make([]float64, s.Ranks)
			last := 0.
			for r := range s.Ranks {
				compute, took := s.Compute*(1+s.Noise*math.Abs(s.draw(1, r, step, segment))), s.Launch*(1+0.2*math.Abs(s.draw(2, r, step, segment)))
				if r == s.Slow {
					compute, took = compute*s.Factor, took*s.Lag
				}
				if !s.Graph || segment == 0 {
					host[r] += took
					asked[r] = host[r]
				}
				come[r] = max(device[r], asked[r]+4000) + compute
				last = max(last, come[r])
			}
			for r := range s.Ranks {
				device[r] = last + s.Transfer
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
		for r := range s.Ranks {
			start := host[r]
			host[r] = max(host[r], device[r]+5000)
			rows.CallRows = append(rows.CallRows, profile.Call{Event: profile.Event{Start: trace.Time(start), End: trace.Time(host[r]), Name: wait, Rank: int32(r)}})
			host[r] += 2 * s.Launch // time between steps
		}
	}
	return set
}

// TPServers are servers with a slow rank.
var TPServers = []struct {
	Name string
	TPServer
}{
	{"device, eager", TPServer{Ranks: 4, Segments: 24, Compute: 90e3, Noise: 0.02, Launch: 30e3, Transfer: 12e3, Factor: 1.15, Lag: 1}},
	{"device, graphs", TPServer{Ranks: 8, Segments: 30, Compute: 60e3, Noise: 0.03, Launch: 40e3, Transfer: 9e3, Graph: true, Factor: 1.3, Lag: 1}},
	{"two ranks", TPServer{Ranks: 2, Segments: 24, Compute: 80e3, Noise: 0.01, Launch: 20e3, Transfer: 10e3, Factor: 1.1, Lag: 1}},
	{"host", TPServer{Ranks: 4, Segments: 24, Compute: 20e3, Noise: 0.05, Launch: 50e3, Transfer: 10e3, Factor: 1, Lag: 1.5}},
	{"device, where other hosts are slow as well", TPServer{Ranks: 4, Segments: 24, Compute: 45e3, Noise: 0.03, Launch: 48e3, Transfer: 10e3, Factor: 1.4, Lag: 1}},
}
