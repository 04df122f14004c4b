package collective

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Eight ranks reduce large messages. A link is slow if even the shortest kernels are
// slow, but not if ranks wait for another rank, or a network may connect them.
func TestSlowLinks(t *testing.T) {
	const ms = 1_000_000
	for name, c := range map[string]struct {
		gpu      string
		hosts    int
		elements int64
		small    int64 // elements, in every second call
		dur      func(call, rank int) int64
		ranks    int // how many were recorded
		want     string
		silent   bool // there is no basis for a judgment
	}{
		"slow": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, dur: func(int, int) int64 { return 88 * ms / 10 }, ranks: 8,
			want: "`allreduce` calls of 17.6 MB on 8 AMD Instinct MI300X of one host move data at 3.50 GB/s (bus bandwidth), every time, and at 3.50 GB/s at most: a slow link, not a late rank; the links between these give 448 GB/s"},
		"one rank seen": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, dur: func(int, int) int64 { return 88 * ms / 10 }, ranks: 1,
			want: "a slow link, unless a rank that is not seen is as late every time; the links"},
		"one rank seen, and small ones in proportion": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, small: 2_900_000, ranks: 1,
			dur:  func(call, _ int) int64 { return int64([]float64{8.8, 3.2}[call%2] * ms) },
			want: "a slow link, unless a rank that is not seen is as late every time; the links"},
		"one rank seen, and small ones take as long": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, small: 2_900_000, ranks: 1,
			dur: func(call, _ int) int64 { return int64([]float64{8.8, 6.8}[call%2] * ms) }},
		"small ones take as long on all ranks": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, small: 2_900_000, ranks: 8,
			dur:  func(call, _ int) int64 { return int64([]float64{8.8, 6.8}[call%2] * ms) },
			want: "a slow link, not a late rank; the links"},
		"a late rank": {gpu: "AMD Instinct MI300X", hosts: 1, elements: 8_800_000, ranks: 8, dur: func(_, rank int) int64 {
			if rank == 3 {
				return ms / 4
			}
			return 88 * ms / 10
		}},
		"healthy":       {gpu: "NVIDIA H100 80GB HBM3", hosts: 1, elements: 8_800_000, dur: func(int, int) int64 { return ms / 5 }, ranks: 8},
		"small":         {gpu: "NVIDIA H100 80GB HBM3", hosts: 1, elements: 1000, dur: func(int, int) int64 { return ms }, ranks: 8, silent: true},
		"two hosts":     {gpu: "NVIDIA H100 80GB HBM3", hosts: 2, elements: 8_800_000, dur: func(int, int) int64 { return 88 * ms / 10 }, ranks: 8, silent: true},
		"unknown links": {gpu: "NVIDIA GeForce RTX 3060", hosts: 1, elements: 8_800_000, dur: func(int, int) int64 { return 88 * ms / 10 }, ranks: 8, silent: true},
	} {
		s := newSyncPoints(make([]string, c.ranks)...)
		g := &gpu.GPUs{}
		for rank := range c.ranks {
			s.Ranks[rank] = fmt.Sprintf("TP%d", rank)
			s.GPUs = append(s.GPUs, c.gpu)
			s.Placements = append(s.Placements, profile.Placement{Host: fmt.Sprintf("node%d", rank%c.hosts)})
			device := gpu.GPU{RankIndex: int32(rank), Last: 200 * ms}
			device.Running[1<<kernelname.ClassCommunication] = 90 * ms
			g.GPUs = append(g.GPUs, device)
		}
		for call := range 10 {
			var meet []int64
			end := int64(call+1) * 20 * ms
			elements := c.elements
			if c.small > 0 && call%2 == 1 {
				elements = c.small
			}
			for rank := range c.ranks {
				dur := c.dur(call, rank)
				p := s.part(int32(rank), "allreduce", end-dur, dur, c.ranks > 1)
				p.In, p.Out = elements, elements
				meet = append(meet, end-dur, dur)
			}
			if c.ranks > 1 {
				x := s.meet(meet...)
				x.In, x.Out = elements, elements
			}
		}
		found, check := Measure(s.Set, 0, trace.Time(0)).SlowLinks(s.Set, g)
		switch {
		case (check.State() == finding.NotApplicable) != c.silent:
			t.Errorf("%s: %+v", name, check)
		case c.want == "" && found != nil, c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Text, c.want)):
			t.Errorf("%s: %+v", name, found)
		}
	}
}
