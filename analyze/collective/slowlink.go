package collective

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// A late rank makes a collective long on the other ranks, and short on itself. A slow link makes
// it long on all of them, every time. So what counts is the shortest kernel: even that is slow.

// A fabric is what connects the accelerators of a host: how many GB/s each can send at once.
type fabric struct {
	gpu    string // part of the accelerator's name
	rate   float64
	source string
}

// fabrics are those of accelerators that come in hosts with a fabric. The first match counts.
var fabrics = []fabric{
	{"PCI", 0, ""}, // how a card is connected is unknown
	{"MI300X", 448, "7 Infinity Fabric links of 64 GB/s, CDNA 3 white paper"},
	{"MI325X", 448, "7 Infinity Fabric links of 64 GB/s, AMD's data sheet"},
	{"MI350X", 538, "7 Infinity Fabric links of 76.8 GB/s, AMD's data sheet"},
	{"MI355X", 538, "7 Infinity Fabric links of 76.8 GB/s, AMD's data sheet"},
	{"B300", 900, "NVLink 5, NVIDIA's data sheet"},
	{"B200", 900, "NVLink 5, NVIDIA's data sheet"},
	{"H800", 200, "NVLink 4 with 8 links, NVIDIA's data sheet"},
	{"H20", 450, "NVLink 4, NVIDIA's data sheet"}, // also H200
	{"H100 80GB HBM3", 450, "NVLink 4, NVIDIA's data sheet"},
	{"A800-SXM", 200, "NVLink 3 with 8 links, NVIDIA's data sheet"},
	{"A100-SXM", 300, "NVLink 3, NVIDIA's data sheet"},
	{"V100-SXM", 150, "NVLink 2, NVIDIA's data sheet"},
}

const (
	// largeMessage is the size in bytes above which bandwidth matters, not latency.
	largeMessage = 1 << 20
	// slowStart is how long a collective may take in addition to its data, in ns. usablePart is the part
	// of a fabric's rate that it must reach: algorithms with few channels reach a quarter at 10 MB.
	slowStart  = 100_000
	usablePart = 0.25
	// slowTimes is how many times longer than that even the shortest kernel must take for the link
	// to be slow, and muchSlow the part of GPU time that slow collectives must take.
	slowTimes = 4
	muchSlow  = 1.0 / 20
	// outOfProportion is by which factor a collective may exceed its size's share of a larger one's
	// time, with a link still explaining both: algorithms for small messages waste up to half of it.
	outOfProportion = 2
)

// A sized is all collectives of one operation, size, and group, if these are known.
type sized struct {
	op, dtype     string
	bytes         int64
	ranks         int32
	n             int // kernels
	fastest, took int64
	typical       int64 // median on the rank with the shortest one, ns
	met           bool  // all ranks were seen in all of them: no late rank makes them long
	seen          []int32
}

// bandwidth returns the bus bandwidth of a collective that takes ns, in GB/s.
func (s *sized) bandwidth(ns int64) float64 { return busBandwidth(s.op, s.bytes, s.ranks, ns) }

// isSlow reports whether even the fastest collective is slow for a fabric.
func (s *sized) isSlow(f *fabric) bool {
	usual := slowStart + s.bandwidth(1)/(usablePart*f.rate)
	return float64(s.fastest) > slowTimes*usual
}

// inProportion reports whether collectives of other sizes take longer about in proportion to their
// size, as with a slow link. Ranks that wait for a late one wait equally long for little data.
func (s *sized) inProportion(all []*sized) bool {
	for _, o := range all {
		small, large := s, o
		if o.bytes < s.bytes {
			small, large = o, s
		}
		share := float64(large.fastest) * small.bandwidth(1) / large.bandwidth(1)
		if o.op == s.op && o.ranks == s.ranks && small.bytes < large.bytes && float64(small.fastest) > outOfProportion*(slowStart+share) {
			return false
		}
	}
	return true
}

// sizes returns the collectives that are large enough, the longest first.
func (c *Collectives) sizes() []*sized {
	type key struct {
		op, dtype string
		bytes     int64
		ranks     int32
	}
	all := map[key]*sized{}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Bytes < largeMessage || busBandwidth(p.Op, p.Bytes, p.GroupSize, 1) == 0 || p.Took.N == 0 {
			continue
		}
		k := key{p.Op, p.Dtype, p.Bytes, p.GroupSize}
		s := order.Memo(all, k, func() *sized {
			return &sized{op: p.Op, dtype: p.Dtype, bytes: p.Bytes, ranks: p.GroupSize, fastest: p.Took.Min, typical: p.Took.P50}
		})
		s.n += p.Took.N
		s.fastest, s.typical = min(s.fastest, p.Took.Min), min(s.typical, p.Took.P50)
		s.took = distribution.AddTimes(s.took, p.Took.Total)
		s.seen = append(s.seen, p.rankIndex)
	}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if s := all[key{k.Op, k.Dtype, k.Bytes, k.GroupSize}]; s != nil && k.Whole == k.N {
			s.met = true
		}
	}
	var list []*sized
	for _, s := range all {
		s.seen = order.Distinct(s.seen)
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *sized) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.op, b.op), cmp.Compare(b.bytes, a.bytes), strings.Compare(a.dtype, b.dtype), cmp.Compare(a.ranks, b.ranks))
	})
	return list
}

// fabricOf returns the fabric of the ranks' host; nil if they may be on several hosts, or if the
// fabric is unknown. sure reports that the files show that all ranks of the group are on one host.
func (c *Collectives) fabricOf(set *profile.Set, s *sized) (f *fabric, sure bool) {
	name, host := set.GPU(s.seen[0]), ""
	sure = len(s.seen) == int(s.ranks) && len(set.Placements) > 0
	for _, r := range s.seen {
		if set.GPU(r) != name {
			return nil, false
		}
		if len(set.Placements) == 0 {
			continue
		}
		at := set.Placements[r].Host
		if host != "" && at != "" && at != host {
			return nil, false
		}
		host, sure = cmp.Or(host, at), sure && at != ""
	}
	sure = sure || fitsOneHost(set, s)
	i := slices.IndexFunc(fabrics, func(f fabric) bool { return strings.Contains(strings.ToUpper(name), strings.ToUpper(f.gpu)) })
	if i < 0 || fabrics[i].rate == 0 || s.ranks > maxOnFabric {
		return nil, false
	}
	return &fabrics[i], sure
}

// fitsOneHost reports whether a group is the whole job, and its processes saw enough accelerators on their machine.
func fitsOneHost(set *profile.Set, s *sized) bool {
	for _, r := range s.seen {
		if len(set.Placements) == 0 || set.Placements[r].Devices < int(s.ranks) {
			return false
		}
	}
	return len(set.Ranks) <= int(s.ranks) && !slices.ContainsFunc(set.MissingRanks, func(a profile.MissingRanks) bool { return a.Size > int(s.ranks) })
}

// maxOnFabric is the largest number of accelerators in a host; a larger group is on several.
const maxOnFabric = 8

// SlowLinks returns the collectives that are slow every time, on all ranks: then their links are slow.
func (c *Collectives) SlowLinks(set *profile.Set, g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "bandwidth of collectives", Of: "kernel of 1 MB or more", Needed: 1}
	sizes := c.sizes()
	var slow []*sized
	took := int64(0)
	for _, s := range sizes {
		f, _ := c.fabricOf(set, s)
		if f == nil {
			continue
		}
		check.N += s.n
		if s.isSlow(f) && (s.met || s.inProportion(sizes)) {
			slow, took = append(slow, s), distribution.AddTimes(took, s.took)
		}
	}
	switch {
	case len(sizes) == 0:
		check.Reason = "no collectives of 1 MB or more and of known size were recorded"
	case check.N == 0:
		check.Reason = "the speed of the links between the accelerators is not known"
	}
	exposed := g.Total(func(d *gpu.GPU) int64 { return d.Exposed(kernelname.ClassCommunication) })
	share := distribution.Fraction(min(took, exposed), g.Length())
	if len(slow) == 0 || share < muchSlow {
		return nil, check
	}
	return []finding.Finding{c.slowLink(set, slow, sizes, share)}, check
}

// slowLink returns the finding about slow collectives, which leads with the longest.
func (c *Collectives) slowLink(set *profile.Set, slow, all []*sized, share float64) finding.Finding {
	s := slow[0]
	fabric, sure := c.fabricOf(set, s)
	where := fmt.Sprintf("%d %s", s.ranks, set.GPU(s.seen[0]))
	if sure {
		where += " of one host"
	}
	f := finding.Finding{Subkind: LinkSubkind, Cost: share, Confidence: finding.Likely,
		Text: fmt.Sprintf("%s of %s on %s move data at %s GB/s (bus bandwidth), every time, and at %s GB/s at most: a slow link, not a late rank; the links between these give %.0f GB/s",
			s.name(), words.Size(s.bytes), where, words.ThreeDigits(s.bandwidth(s.typical)), words.ThreeDigits(s.bandwidth(s.fastest)), fabric.rate),
		Metric: finding.Metric{Name: "bus bandwidth", Unit: table.Number, Before: math.NaN(), After: s.bandwidth(s.typical)},
	}
	f.Evidence = append(f.Evidence, finding.Sentence("%s, of which the shortest took %s and half took %s or less: data alone takes %s on such links (%s)", words.Counted(s.n, "kernel"),
		words.Nearly(s.fastest), words.Nearly(s.typical), words.Nearly(int64(s.bandwidth(1)/fabric.rate)), fabric.source))
	if !s.met {
		f.Text = strings.Replace(f.Text, "a slow link, not a late rank;", "a slow link, unless a rank that is not seen is as late every time;", 1)
	}
	if !sure {
		f.Evidence = append(f.Evidence, finding.Sentence("the files do not tell whether all %d ranks are on one host: a network between hosts may be the link", s.ranks))
	}
	if best := fastestOf(all, s); best != nil {
		f.Evidence = append(f.Evidence, finding.Sentence("the fastest others in this capture, %s of %s on %d ranks, reach %s GB/s", best.name(), words.Size(best.bytes), best.ranks, words.ThreeDigits(best.bandwidth(best.fastest))))
	}
	for _, other := range slow[1:min(len(slow), fewNamed)] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s of %s: %s GB/s", other.name(), words.Size(other.bytes), words.ThreeDigits(other.bandwidth(other.typical))))
	}
	return f
}

// LinkSubkind is the subkind of findings about slow links.
const LinkSubkind = "slow link"

// name returns the operation in the plural.
func (s *sized) name() string { return "`" + s.op + "` calls" }

// fastestOf returns the large collectives with the highest bandwidth, or nil if none are faster than s.
func fastestOf(all []*sized, s *sized) (best *sized) {
	for _, o := range all {
		if o != s && o.bandwidth(o.fastest) > s.bandwidth(s.fastest) && (best == nil || o.bandwidth(o.fastest) > best.bandwidth(best.fastest)) {
			best = o
		}
	}
	return best
}
