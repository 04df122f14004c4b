package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
)

// Kind says what a row of a Diff is of.
type Kind uint8

const (
	Request Kind = iota // a metric of finished requests
	Stage
	Step
	GPU // where the time of devices went
	Kernel
	Copy
	HostWait   // a call that waits for the device
	Collective // how long ranks wait in collectives, and how late they are
	// Of those that are asked for:
	Operator    // time of threads in an operator itself
	OperatorGPU // what it launched itself
	HostCause   // time of devices while the host did something
)

// kinds are all of them, by their numbers.
var kinds = [...]struct {
	word, doc string
	metric    *metric.Metric // by which conditions name rows of the kind; nil is none
	totalOnly bool           // only totals mean something
}{
	Request:     {"request", "a metric of finished requests", nil, false},
	Stage:       {"stage", "", metric.Stage, false},
	Step:        {"step", "an annotated step of the host", metric.Step, false},
	GPU:         {"gpu", "where the time of devices went", metric.GPU, true},
	Kernel:      {"kernel", "", metric.Kernel, false},
	Copy:        {"copy", "", metric.Copy, false},
	HostWait:    {"host wait", "a call that waits for the device", nil, false},
	Collective:  {"collective", "", nil, false},
	Operator:    {"operator", "time of threads in it and in no operator within", nil, false},
	OperatorGPU: {"operator gpu", "what it launched itself", nil, false},
	HostCause:   {"host cause", "time of devices while the host did this", nil, true},
}

func (k Kind) String() string { return kinds[k].word }

// totalOnly reports whether only totals of the kind mean something.
func (k Kind) totalOnly() bool { return kinds[k].totalOnly }

// profiled reports whether rows of the kind are about what profilers recorded.
func (k Kind) profiled() bool { return k >= Step }

// kindsInWords says what the words mean that rows have for their kinds.
func kindsInWords() string {
	var list []string
	for _, k := range kinds {
		text := k.word
		if k.doc != "" {
			text += ": " + k.doc
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// Gauge gauges a metric of both captures. Of one with names, it is what has the name, or all of them
// together where that is ""; number is one of the metric's. It is nil where the captures do not have
// the metric.
func (d *Diff) Gauge(m *metric.Metric, name, number string) *Gauge {
	switch {
	case m == metric.DecodeStep:
		return d.gaugeDecodeSteps()
	case m.IsMean():
		return d.gaugeLoad(m)
	case m.Of != nil:
		return d.gaugeRows(Request, m.Name, number)
	}
	for k := range kinds {
		if kinds[k].metric == m {
			return d.gaugeRows(Kind(k), name, number)
		}
	}
	return nil
}

// metricOf returns the metric that a row is of; nil is none. Those of a kind have one that is theirs together.
func (r *Row) metricOf() *metric.Metric {
	if r.Kind == Request {
		return metric.Named(r.Name)
	}
	return kinds[r.Kind].metric
}

// noticed reports whether users notice what the row is about.
func (r *Row) noticed() bool { return r.Kind == Request && r.metricOf().Weight >= metric.Noticed }

// sameWork tells how much work two captures without steps have in common. Dividing by their
// time would make one that idles more look as if it computed less.
type sameWork struct {
	// ratio is how many times as often the capture after launches the kernels that both
	// have; 1 where that is not known.
	ratio float64
	known bool
}

// Kernels that both captures have must agree about the ratio: most launches within a few
// percent.
const (
	agreeing   = 0.8
	ratioError = 0.03
)

// matchWork finds how much work two sides have in common, and divides the totals of the one
// after by that.
func matchWork(sides [2]*Collected) sameWork {
	var counts [2]map[string]float64
	for i, side := range sides {
		counts[i] = side.launches()
	}
	type shared struct{ ratio, weight float64 }
	var list []shared
	all := 0.0
	for name, n := range counts[0] {
		if m := counts[1][name]; m > 0 {
			list = append(list, shared{m / n, n + m})
			all += n + m
		}
	}
	work := sameWork{ratio: 1}
	if len(list) == 0 {
		return work
	}
	slices.SortFunc(list, func(a, b shared) int { return cmp.Or(cmp.Compare(a.ratio, b.ratio), cmp.Compare(a.weight, b.weight)) })
	median, below := 0.0, 0.0
	for _, s := range list {
		if below += s.weight; 2*below >= all {
			median = s.ratio
			break
		}
	}
	near := 0.0
	for _, s := range list {
		if math.Abs(s.ratio/median-1) <= ratioError {
			near += s.weight
		}
	}
	if near < agreeing*all {
		return work
	}
	for _, of := range sides[1].work[perSecond] {
		for piece := range of {
			of[piece] *= median
		}
	}
	return sameWork{median, true}
}

// launches returns how many kernels of each name a side has.
func (d *Collected) launches() map[string]float64 {
	n := map[string]float64{}
	for key, groups := range d.groups {
		if key.Kind != Kernel {
			continue
		}
		for _, g := range groups {
			for i := range g.pieces {
				n[key.Name] += float64(g.pieces[i].Len())
			}
		}
	}
	return n
}

// lengths says how long captures without steps are, and what their totals are of; nothing of
// others.
func (d *Diff) lengths() []string {
	if d.per != perSecond || min(d.Before.Ranks, d.After.Ranks) <= 0 || d.locate.captures() {
		return nil
	}
	text := "No steps in captures of " + compare.PairInWords(distribution.Between(d.Before.First, d.Before.Last), distribution.Between(d.After.First, d.After.Last))
	switch {
	case !d.work.known:
		text += ": totals are of all of each, and nothing shows how much work that is"
	case math.Abs(d.work.ratio-1) > ratioError:
		text += fmt.Sprintf(": the second launches kernels %.3g times as often, and its totals are divided by that", d.work.ratio)
	default:
		text += " that launch the same kernels as often: totals are of all of each"
	}
	list := []string{text}
	for _, name := range [...]string{"compute", "idle"} {
		if r := d.Row(GPU, name); r != nil && !r.only() {
			list = append(list, "GPU "+name+" "+compare.PairInWords(r.Before.PerUnit/10, r.After.PerUnit/10))
		}
	}
	return []string{strings.Join(list, ", ")}
}
