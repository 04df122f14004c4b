package whatif

import (
	"errors"
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Steps predicts the duration of steps, from profiles of ranks.
type Steps struct {
	chain *collective.Chain
	gpus  *gpu.GPUs
	set   *profile.Set
}

// NewSteps uses a measurement that kept its chain of collectives; it returns nil without one.
func NewSteps(m *finders.Measured) *Steps {
	if m.Chain == nil {
		return nil
	}
	return &Steps{m.Chain, m.GPUs, m.Of.Profiles}
}

// maxHidden is the largest share of communication that may be hidden behind computation. With more, ranks do not wait
// for all of their collectives.
const maxHidden = 0.1

// without predicts the duration of steps without the cause of a finding.
func (s *Steps) without(f *finding.Finding) (*Answer, error) {
	rank := s.chain.Rank(f.Rank)
	switch {
	case straggler.IsWorker(f):
		metrics, name, assumed, err := straggler.WithoutWorker(s.set, f, model)
		return &Answer{&Change{Name: name, Assumed: []string{assumed}}, metrics}, err
	case f.Kind != finding.Straggler || f.Rank == "":
		return nil, errors.New(noCounterfactual(f))
	case s.chain.Refused != "":
		return nil, errors.New(s.chain.Refused)
	case rank < 0:
		return nil, errors.New("the collectives of the rank are not known")
	}
	if hidden := s.hidden(); hidden > maxHidden {
		return nil, fmt.Errorf("computing hides %s %% of the communication, and for which collectives ranks wait is not known", words.InPercent(hidden))
	}
	c := &Change{Name: f.Rank + " as fast as its peers", Assumed: []string{
		"it computes from collective to collective what its peers do", "hosts that wait for their devices are earlier if these are, and no others"}}
	return &Answer{c, s.ask(collective.Change{Rank: rank, Since: f.Since, Until: f.Until})}, nil
}

// hidden returns the share of communication that is hidden behind other work.
func (s *Steps) hidden() float64 {
	all := s.gpus.Total(func(g *gpu.GPU) int64 { return g.Time(kernelname.ClassCommunication) })
	exposed := s.gpus.Total(func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })
	return distribution.Fraction(all-exposed, all)
}

// stepMetrics are the metrics of steps by kind, and of all steps.
var stepMetrics = [...]struct {
	name string
	kind profile.StepKind // StepOther is all kinds
}{{finding.Step, profile.StepOther}, {finding.PrefillStep, profile.StepPrefill}, {finding.DecodeStep, profile.StepDecode}}

// ask plays a change, and compares the durations of steps. The interval covers the random draws, an error of a tenth
// of the change, and the case that all hosts follow their devices.
func (s *Steps) ask(c collective.Change) (out []finding.Without) {
	var played []collective.StepTimes
	var recorded collective.StepTimes
	var ranks []int
	for seed := range uint64(draws) {
		c.Seed = seed + 1
		var t collective.StepTimes
		recorded, t, ranks = s.chain.Play(&c)
		played = append(played, t)
	}
	c.HostsFollow = true
	_, follow, _ := s.chain.Play(&c)
	steps, known := s.count(ranks)
	for _, m := range stepMetrics {
		of := func(t *collective.StepTimes) float64 { return float64(t[m.kind]) / float64(steps[m.kind]) }
		if m.kind == profile.StepOther {
			of = func(t *collective.StepTimes) float64 { return float64(t.Total()) / float64(steps[m.kind]) }
		} else if recorded[m.kind] == 0 || steps[m.kind] == steps[profile.StepOther] {
			continue // there are none, or all steps are of this kind
		}
		if steps[m.kind] == 0 {
			continue
		}
		w := finding.Without{Metric: m.name, Unit: table.Duration, Actual: of(&recorded)}
		if !known {
			w.Metric = finding.Span
		}
		mean, spread := 0.0, 0.0
		for i := range played {
			mean += of(&played[i]) / draws
		}
		for i := range played {
			spread += math.Pow(of(&played[i])-mean, 2) / (draws - 1)
		}
		half := 2*math.Sqrt(spread) + model*math.Abs(mean-w.Actual)
		w.Without, w.Low, w.High = mean, max(0, min(mean-half, of(&follow))), max(mean+half, of(&follow))
		out = append(out, w)
	}
	return out
}

// stepCounts are numbers of steps by kind; StepOther is all.
type stepCounts [profile.StepDecode + 1]int64

// count counts the steps of some ranks. If no steps are known, everything that a rank did counts as one.
func (s *Steps) count(ranks []int) (n stepCounts, known bool) {
	of := order.Set(order.Each(ranks, s.chain.Name))
	for i := range s.gpus.Served {
		r := &s.gpus.Served[i]
		for k := range r.Steps {
			if step := &r.Steps[k]; of[r.Rank] && step.Kernels > 0 {
				n[profile.StepOther]++
				if kind := step.StepName.Kind; kind != profile.StepOther {
					n[kind]++
				}
			}
		}
	}
	if n[profile.StepOther] == 0 {
		n[profile.StepOther] = int64(len(ranks))
		return n, false
	}
	return n, true
}

// Fix answers --fix for profiles. names are names of fixes, or IDs of findings; without names, it answers for all
// findings that it can.
func (s *Steps) Fix(names []string, found []finding.Finding) (list []Answer, err error) {
	var why error
	for i := range found {
		f := &found[i]
		asked := len(names) == 0
		for _, name := range names {
			fix := fixFor(f)
			asked = asked || name == f.ID() || fix != nil && name == fix.Name
		}
		if !asked {
			continue
		}
		answer, err := s.without(f)
		if err != nil {
			why = err
			continue
		}
		list = append(list, *answer)
	}
	switch {
	case len(list) > 0:
		return list, nil
	case s.chain.Refused != "" && len(s.set.Lanes) == 0:
		return nil, errors.New("nothing can be said: " + s.chain.Refused)
	case why != nil && len(names) > 0:
		return nil, fmt.Errorf("nothing can be said: %w", why)
	}
	return nil, errors.New("nothing was found in the profiles that could be taken away: that takes a rank that is late in collectives, or a slow worker or stage of a training run")
}
