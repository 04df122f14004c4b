package gpuloss

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Ranks that launch the same kernels equally often do the same work, like those of a tensor parallel group.
// If kernels of a rank take longer than those of its peers, its device is slower, or it has more to do in
// each, which names do not show. This needs no collectives, and shows in few kernels, as all of them agree.
const (
	muchSlower   = 1.1  // times as long
	slowCosts    = 0.02 // of the time of all devices
	asOften      = 0.05 // relative difference allowed in the number of kernels of a name: captures do not begin and end at the same kernel
	sameKernels  = 0.8  // share of a rank's kernel time in names that its peers launch as often
	fewestPeered = 10   // kernels of a name that are needed to know how long it takes
	nearlyAllOf  = 0.8  // of the time: from here on all kernels are slower, or those of one name are the cause
	mostGroups   = 64   // of ranks that launch the same kernels
	mostPeers    = 64   // most peers that a rank is compared with
)

// SlowSubkind is the subkind of findings about ranks whose kernels take longer than those of their peers.
const SlowSubkind = "slower kernels"

// A peered is the kernels of one name on a rank, and how long as many take on its peers, ns.
type peered struct {
	name        string
	n           int64
	blocks      [2]float64 // mean of the launches on its peers, and on the rank; 0 is unknown
	took, usual float64
	median      float64 // what took would be if all kernels were slower by as much as the median one
}

func (p *peered) longer() float64 { return p.took - p.usual }

// A slowRank is a rank compared with its peers.
type slowRank struct {
	rank        int32
	name        string
	peers       []int32
	all         int      // number of its peers, including those that it is not compared with
	kernels     []peered // the largest difference first
	took, usual float64
	median      float64
}

func (s *slowRank) factor() float64 { return s.took / s.usual }

// isSlower reports whether the rank takes longer, and not just in a few kernels: the medians must be higher, too.
func (s *slowRank) isSlower() bool {
	return s.factor() >= muchSlower && s.median/s.usual-1 >= (s.factor()-1)/2
}

// SlowKernels finds ranks that take longer for kernels that their peers launch, too. waited returns how
// long others waited for a rank in collectives, in total, as far as that is known.
func SlowKernels(g *gpu.GPUs, waited func(rank int32) int64) (found []finding.Finding, check finding.Check) {
	check = finding.Check{What: "kernels of ranks that do the same", Of: "rank", Needed: 2}
	of := map[int32]launched{}
	for i := range g.Kernels {
		if k := &g.Kernels[i]; k.Class == kernelname.ClassCompute {
			order.Memo(of, k.RankIndex, func() launched { return launched{} })[k.Sym] = k
		}
	}
	groups := groupsOf(of)
	for _, group := range groups {
		for _, rank := range group {
			s := besidePeers(rank, group, of)
			if s == nil {
				continue
			}
			if check.N++; s.isSlower() {
				if f := s.finding(g, waited(rank)); f.Cost >= slowCosts {
					found = append(found, f)
				}
			}
		}
	}
	if check.N == 0 {
		check.Reason = "no two ranks launch the same kernels"
	}
	return found, check
}

// launched are the kernels of a rank, by name.
type launched map[trace.Sym]*gpu.RankKernel

// groupsOf groups ranks that launch the same kernels as often as the first rank of their group. If very
// many ranks all differ, most are in no group.
func groupsOf(of map[int32]launched) (groups [][]int32) {
	for _, rank := range slices.Sorted(maps.Keys(of)) {
		k := slices.IndexFunc(groups, func(group []int32) bool { return launchesAsOften(of[rank], of[group[0]]) })
		switch {
		case k >= 0:
			groups[k] = append(groups[k], rank)
		case len(groups) < mostGroups:
			groups = append(groups, []int32{rank})
		}
	}
	return groups
}

// besidePeers compares a rank with others of its group. It returns nil if there are none, or too few kernels of every name.
func besidePeers(rank int32, group []int32, of map[int32]launched) *slowRank {
	s := &slowRank{rank: rank, all: len(group) - 1}
	for _, other := range group[:min(len(group), mostPeers+1)] {
		if other != rank && len(s.peers) < mostPeers {
			s.peers = append(s.peers, other)
		}
	}
	if len(s.peers) == 0 {
		return nil
	}
	for sym, own := range of[rank] {
		s.name = own.Rank
		var usual, medians, blocks []float64
		for _, peer := range s.peers {
			if k := of[peer][sym]; k != nil && own.Summary.N >= fewestPeered && isAsOften(own, k) {
				medians, blocks = append(medians, float64(k.Summary.P50)), append(blocks, k.Blocks)
				usual = append(usual, float64(computed(k))/float64(k.Summary.N)*float64(own.Summary.N))
			}
		}
		if len(usual) > 0 {
			p := peered{name: own.Name, n: int64(own.Summary.N), took: float64(computed(own)), usual: distribution.LowerMedian(usual), blocks: [2]float64{distribution.LowerMedian(blocks), own.Blocks}}
			p.median = p.usual * float64(own.Summary.P50) / max(1, distribution.LowerMedian(medians))
			s.kernels = append(s.kernels, p)
		}
	}
	if len(s.kernels) == 0 {
		return nil
	}
	slices.SortFunc(s.kernels, func(a, b peered) int {
		return cmp.Or(cmp.Compare(b.longer(), a.longer()), strings.Compare(a.name, b.name))
	})
	for i := range s.kernels {
		p := &s.kernels[i]
		s.took, s.usual, s.median = s.took+p.took, s.usual+p.usual, s.median+p.median
	}
	return s
}

// launchesAsOften reports whether nearly all of what either rank computes is in kernels that the other one launches as often.
func launchesAsOften(x, y launched) bool {
	part := func(x, y launched) float64 {
		same, all := 0.0, 0.0
		for sym, k := range x {
			t := float64(computed(k))
			if all += t; y[sym] != nil && isAsOften(k, y[sym]) {
				same += t
			}
		}
		if all == 0 {
			return 0
		}
		return same / all
	}
	return part(x, y) >= sameKernels && part(y, x) >= sameKernels
}

func isAsOften(x, y *gpu.RankKernel) bool {
	a, b := float64(x.Summary.N), float64(y.Summary.N)
	return math.Abs(a-b) <= max(1, asOften*max(a, b))
}

// computed returns the time of kernels without their waits for communication, ns.
func computed(k *gpu.RankKernel) int64 { return max(0, k.Summary.Total-k.Waited) }

// finding returns the finding about a rank that is slower than its peers. Its cost is the extra time of its kernels, unless
// its device is idle for less time instead, as where its host is late anyway, and the time that peers wait for it. Their
// waiting is what collectives show, or how much longer they have exposed communication, but no more than the extra time.
func (s *slowRank) finding(g *gpu.GPUs, waited int64) finding.Finding {
	longer := s.took - s.usual
	text := fmt.Sprintf("kernels take %s times as long on %s as on %s: %s", words.ThreeDigits(s.factor()), s.name, s.peersText(g), s.which())
	f := finding.Finding{Kind: finding.GPU, Subkind: SlowSubkind, At: place.Named(s.name), Rank: s.name, Text: text,
		Metric: finding.Metric{Name: "time of kernels beside peers", Unit: table.Number, Before: 1, After: s.factor()}}
	own, waits := timeOf(g, s.rank, exposedComm), 0.0
	idle := order.Each(s.peers, func(peer int32) float64 { return timeOf(g, peer, (*gpu.GPU).IdleTime) })
	lost := max(0, longer-max(0, distribution.LowerMedian(idle)-timeOf(g, s.rank, (*gpu.GPU).IdleTime)))
	for _, peer := range s.peers {
		waits += min(lost, max(0, timeOf(g, peer, exposedComm)-own))
	}
	waits = max(waits, min(float64(waited), lost*float64(len(s.peers))))
	f.Cost = min(1, (lost+waits)/max(1, float64(g.Length())))
	for i := range s.kernels[:min(3, len(s.kernels))] {
		if k := &s.kernels[i]; k.longer() > 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("%s: %s times as long, %s in all (%s)", briefly(k.name), words.ThreeDigits(k.took/max(1, k.usual)),
				words.Nearly(int64(k.longer())), words.Counted(int(k.n), "kernel")))
		}
	}
	if waits >= slowCosts*float64(g.Length()) {
		f.Evidence = append(f.Evidence, finding.Sentence("its peers have %s more exposed communication than it does: they wait", words.Nearly(int64(waits/float64(len(s.peers))))))
	}
	return f
}

// which says which kernels take longer: all of them, or some.
func (s *slowRank) which() string {
	all, usual := 0.0, 0.0
	for i := range s.kernels {
		k := &s.kernels[i]
		if usual += k.usual; k.usual > 0 && k.took/k.usual-1 >= (s.factor()-1)/2 {
			all += k.usual
		}
	}
	top := &s.kernels[0]
	switch {
	case len(s.kernels) > 1 && all >= nearlyAllOf*usual:
		return "nearly all of them, " + s.why()
	case top.longer() >= nearlyAllOf*(s.took-s.usual):
		return fmt.Sprintf("`%s`, %s times as long, while others take as long as there", briefly(top.name), words.ThreeDigits(top.took/max(1, top.usual)))
	}
	return "most of all `" + briefly(top.name) + "`"
}

// why says why nearly all kernels take longer, as far as that is known.
func (s *slowRank) why() string {
	blocks := profilewalk.More(order.EachRow(s.kernels, func(p *peered) profilewalk.Resized {
		return profilewalk.Resized{Before: p.blocks[0], After: p.blocks[1], Time: p.usual}
	}), s.factor())
	return profilewalk.WhyAlike(blocks, s.factor(), "its clock")
}

// peersText names the peers of a rank.
func (s *slowRank) peersText(g *gpu.GPUs) string {
	switch {
	case s.all > len(s.peers):
		return fmt.Sprintf("%d of its %d peers", len(s.peers), s.all)
	case len(s.peers) > 1:
		return fmt.Sprintf("its %d peers", len(s.peers))
	}
	for i := range g.GPUs {
		if d := &g.GPUs[i]; d.RankIndex == s.peers[0] {
			return d.Rank
		}
	}
	return "its peer"
}

// timeOf adds up a time of the devices of a rank, ns.
func timeOf(g *gpu.GPUs, rank int32, of func(*gpu.GPU) int64) (sum float64) {
	for i := range g.GPUs {
		if d := &g.GPUs[i]; d.RankIndex == rank {
			sum += float64(of(d))
		}
	}
	return sum
}

// exposedComm returns for how long a device communicates with nothing else running, ns.
func exposedComm(d *gpu.GPU) int64 { return d.Exposed(kernelname.ClassCommunication) }

// briefly returns the name of a kernel for a sentence.
func briefly(name string) string {
	const width = 48 // columns
	return table.CutMiddle(profile.BareName(name), width, table.Style{ASCII: true})
}
