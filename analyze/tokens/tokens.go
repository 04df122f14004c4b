// Package tokens measures how many tokens the steps of a server compute, and how fast.
//
// The names of steps contain their tokens, see [profile.StepName]: those that the model computes in prefill and in
// decode. Package gpu finds the steps, and the work that each launched.
package tokens

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// Tokens holds the tokens of the steps of all ranks.
type Tokens struct {
	Rows  []Row // sorted by kind, batch size, and rank
	Ranks []Rank
}

// A Row is the steps of one kind and one bucket of batch sizes on a rank.
type Row struct {
	Rank               string
	Kind               profile.StepKind
	MinBatch, MaxBatch int32 // requests; -1 is unknown
	Captured           int64 // ns: how long the rank was recorded
	Count
	Graphs gpu.GraphUse // of decode steps
}

// A Count sums up the tokens in the names of some steps.
type Count struct {
	Steps int                  // number of all steps
	Known distribution.Summary // tokens per step, of the steps with tokens in their names
	// Decoded is the number of tokens in Known from requests that decode.
	Decoded int64
	// Projected is the number of tokens in Known from steps that launched work, and Device is the time of these steps
	// on the device, ns: each from the first start to the last end of its work, without unrecorded work of the device
	// in between.
	Projected, Device int64

	tokens []int64 // by step, until summed up
}

// A Rank is all steps of a rank.
type Rank struct {
	Name   string
	ByKind [len(profilewalk.StepKinds)]Count
}

// Measure counts the tokens of the steps of all ranks.
func Measure(gpus *gpu.GPUs) *Tokens {
	t := &Tokens{}
	for i := range gpus.Served {
		t.add(&gpus.Served[i])
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(profilewalk.StepKinds[b.Kind], profilewalk.StepKinds[a.Kind]), cmp.Compare(a.MinBatch, b.MinBatch))
	})
	return t
}

// add adds the steps of a rank.
func (t *Tokens) add(served *gpu.RankSteps) {
	type key struct {
		kind profile.StepKind
		from int32
	}
	index := map[key]int{} // into t.Rows
	rank := Rank{Name: served.Rank}
	first := len(t.Rows)
	for i := range served.Steps {
		s := &served.Steps[i]
		from, to := profilewalk.BatchBucket(s.StepName.Batch)
		at := order.At(index, &t.Rows, key{s.StepName.Kind, from}, func() Row {
			return Row{Rank: served.Rank, Kind: s.StepName.Kind, MinBatch: from, MaxBatch: to, Captured: served.Captured}
		})
		t.Rows[at].Count.add(s)
		rank.ByKind[s.StepName.Kind].add(s)
	}
	for _, u := range served.Graphs {
		t.Rows[index[key{profile.StepDecode, u.MinBatch}]].Graphs = u
	}
	for i := range t.Rows[first:] {
		t.Rows[first+i].Count.sumUp()
	}
	for i := range rank.ByKind {
		rank.ByKind[i].sumUp()
	}
	t.Ranks = append(t.Ranks, rank)
}

func (c *Count) add(s *profilewalk.Step) {
	c.Steps++
	tokens, ok := s.StepName.Tokens()
	if !ok {
		return
	}
	c.tokens = append(c.tokens, tokens)
	c.Decoded += int64(s.StepName.Decoded)
	if s.Projected {
		c.Projected += tokens
		c.Device = distribution.AddTimes(c.Device, max(0, distribution.Between(s.First, s.Last)-s.Unseen))
	}
}

func (c *Count) sumUp() {
	c.Known = distribution.Summarize(c.tokens)
	c.tokens = nil
}

// onDevice returns the tokens per second of device time; NaN if no step with known tokens launched work.
func (c *Count) onDevice() float64 { return perSecond(c.Projected, c.Device) }

// over returns the tokens per second over a time in ns; NaN unless the tokens of all steps are known.
func (c *Count) over(ns int64) float64 {
	if c.Known.N < c.Steps {
		return math.NaN()
	}
	return perSecond(c.Known.Total, ns)
}

func perSecond(n, ns int64) float64 {
	if ns <= 0 {
		return math.NaN()
	}
	return float64(n) / float64(ns) * 1e9
}
