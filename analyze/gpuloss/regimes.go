package gpuloss

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// muchOfRegime is the part of all time that something has to cost in steps of one kind if it
// is large in these only.
const muchOfRegime = 1.0 / 20

// A regime is what all devices did in steps of one kind. Prefill and decode are two: what
// is large in one of them may be small in the mixture.
type regime struct {
	name string // "decode"
	gpuTime
}

// regimes returns prefill and decode; nil unless there are both.
func regimes(g *gpu.GPUs) []regime {
	var out []regime
	for _, kind := range [...]profile.StepKind{profile.StepPrefill, profile.StepDecode} {
		r := regime{name: profilewalk.StepKinds[kind]}
		for i := range g.GPUs {
			did := &g.GPUs[i].BySteps[kind]
			r.add(&g.GPUs[i], did, did.Total())
		}
		if r.length == 0 {
			return nil
		}
		out = append(out, r)
	}
	return out
}

// A largePart is a part of GPU time that is a finding where it is large.
type largePart struct {
	of    func(*gpuTime) int64
	time  func(*gpuTime) int64 // of which it is a part
	least float64
	// avoidable is that without what a fast run has, too, which is told from muchLate on; nil is
	// nothing.
	avoidable func(*gpuTime) int64
	tell      func(*gpu.GPUs, *gpuTime) finding.Finding
	// devices says how devices differ over the whole time.
	devices finding.Evidence
}

// judge tells whether a part is large of the whole time, or of that of a regime. What it
// costs is a part of the whole in either case.
func judge(g *gpu.GPUs, whole *gpuTime, p *largePart) (found []finding.Finding) {
	regimes := regimes(g)
	if p.share(whole) >= p.least && whole.part(p.of(whole)) >= muchOfRegime {
		return []finding.Finding{p.ofWhole(g, whole, regimes)}
	}
	for i := range regimes {
		r := &regimes[i]
		cost := distribution.Fraction(p.of(&r.gpuTime), whole.length)
		if r.length < shortest || p.share(&r.gpuTime) < p.least || cost < muchOfRegime {
			continue
		}
		f := p.tell(g, &r.gpuTime)
		f.Text, f.Metric.Name, f.Cost = fmt.Sprintf("in %s, %s", r.name, f.Text), f.Metric.Name+" in "+r.name, cost
		f.Evidence = append(f.Evidence, p.inRegimes(regimes))
		found = append(found, f)
	}
	if len(found) == 0 && p.avoidable != nil && distribution.Fraction(p.avoidable(whole), p.time(whole)) >= muchLate && whole.part(p.of(whole)) >= muchOfRegime {
		return []finding.Finding{p.ofWhole(g, whole, regimes)}
	}
	return found
}

// ofWhole tells of all the time.
func (p *largePart) ofWhole(g *gpu.GPUs, whole *gpuTime, regimes []regime) finding.Finding {
	f := p.tell(g, whole)
	f.Cost = whole.part(p.of(whole))
	for _, e := range [...]finding.Evidence{p.devices, p.inRegimes(regimes)} {
		if e.Text != "" {
			f.Evidence = append(f.Evidence, e)
		}
	}
	return f
}

// share returns which part of the time it is.
func (p *largePart) share(t *gpuTime) float64 { return distribution.Fraction(p.of(t), p.time(t)) }

// inRegimes tells how large a part is in each regime, the largest first: "in decode 41 %,
// in prefill 6 %"; nothing without regimes.
func (p *largePart) inRegimes(regimes []regime) finding.Evidence {
	part := func(r *regime) float64 { return p.share(&r.gpuTime) }
	regimes = slices.Clone(regimes)
	slices.SortStableFunc(regimes, func(a, b regime) int { return cmp.Compare(part(&b), part(&a)) })
	parts := order.EachRow(regimes, func(r *regime) string { return fmt.Sprintf("in %s %.0f %%", r.name, 100*part(r)) })
	return finding.Sentence("%s", strings.Join(parts, ", "))
}
