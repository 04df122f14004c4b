package torch

import "github.com/sgtrace/sgtrace/golden/simulator"

// Truth is the content of the PyTorch traces of a run. Times are true time, as
// everywhere; a file has them on the clock of its host.
type Truth struct {
	// FromNs and ToNs bound the recording. It contains the steps that are within these bounds on all ranks of a TP group.
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
	// EndJitterNs is the standard deviation of the end of a collective on each of its ranks. It is cut at three times that.
	EndJitterNs int64        `json:"end_jitter_ns"`
	Files       []FileTruth  `json:"files"`
	Groups      []GroupTruth `json:"groups"`
}

// FileTruth is the trace of one scheduler.
type FileTruth struct {
	Name string `json:"name"`
	Role string `json:"role"`
	Host string `json:"host"`
	Rank string `json:"rank"` // TP0-PP0-DP1
	PID  int    `json:"pid"`
	// WorldRank is the rank in torch.distributed, where every DP rank has a world of its own, and Device the ordinal of the GPU
	// on the host.
	WorldRank int `json:"world_rank"`
	Device    int `json:"device"`
	Group     int `json:"group"` // index in Truth.Groups
	// FirstNs and LastNs are the start of the first slice and the end of the last, without that of the recording as a whole; 0
	// if there is none.
	FirstNs int64                 `json:"first_ns"`
	LastNs  int64                 `json:"last_ns"`
	Steps   []simulator.NameCount `json:"steps"` // by mode; a prebuilt one has no step annotation
	// Events counts the events by category. Arrows count once for each end.
	Events []simulator.NameCount `json:"events"`
	// Collectives counts those with metadata, LastArrivals those to which this rank came last. WaitNs is the sum of the times
	// that it was there before the last rank. The latter two cover all collectives, including those inside graphs.
	Collectives  int   `json:"collectives"`
	LastArrivals int   `json:"last_arrivals"`
	WaitNs       int64 `json:"wait_ns"`
}

// GroupTruth is a TP group: ranks that meet in collectives.
type GroupTruth struct {
	Role string `json:"role"`
	DP   int    `json:"dp"`
	PP   int    `json:"pp"`
	Size int    `json:"size"`
	// Name is the Process Group Name, which other replicas use as well.
	Name  int `json:"name"`
	Steps int `json:"steps"`
	// Collectives counts those with metadata in the recording, and GraphKernels the kernels of collectives without metadata,
	// inside graphs.
	Collectives  int `json:"collectives"`
	GraphKernels int `json:"graph_kernels"`
}

// truth returns the content of the trace of c, once it has been written.
func (c *Capture) truth(t *writer, passes []Pass) *FileTruth {
	p := c.Process()
	f := &FileTruth{
		Name: c.name(), Role: string(p.Role), Host: c.run().Hosts[p.Host].Name, Rank: p.Rank.String(), PID: p.PID,
		WorldRank: c.worldRank(), Device: c.Device(), Group: c.Group.index, FirstNs: t.first, LastNs: t.last,
	}
	steps := map[simulator.ForwardMode]int{}
	for i := range passes {
		pass := &passes[i]
		steps[pass.Step.Mode]++
		for j := range pass.Work {
			k := &pass.Work[j]
			if k.Op != opAllReduce && k.Op != OpAllGather {
				continue
			}
			if pass.Calls[k.Call].Seq != 0 {
				f.Collectives++
			}
			s := &pass.segments[k.segment]
			f.WaitNs += s.start(0) - k.Start
			if s.last == c.TP {
				f.LastArrivals++
			}
		}
	}
	for _, m := range []simulator.ForwardMode{simulator.ModePrefill, simulator.ModePrebuilt, simulator.ModeDecode} {
		f.Steps = append(f.Steps, simulator.NameCount{Name: string(m), Count: steps[m]})
	}
	for i, name := range categoryNames {
		f.Events = append(f.Events, simulator.NameCount{Name: name, Count: t.counts[i]})
	}
	return f
}

// truth returns the recording of a group, before Config.Ragged takes steps away from some of its ranks.
func (g *Group) truth() GroupTruth {
	t := GroupTruth{
		Role: string(g.profile.Run.Instances[g.Instance].Role), DP: g.DP, PP: g.PP, Size: g.Size.TP,
		Name: g.groupName(), Steps: len(g.forwards), Collectives: g.collectives,
	}
	for i := range g.forwards {
		if f := &g.forwards[i]; f.graph && g.Size.TP > 1 {
			t.GraphKernels += len(f.segments)
		}
	}
	return t
}
