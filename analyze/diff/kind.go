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

// A Kind is what a row of a Diff is about.
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
	// Only in tables that are asked for:
	Operator    // time of threads in an operator, without operators within it
	OperatorGPU // device time of what an operator launched itself
	HostCause   // idle time of devices, by what the host did meanwhile
)

// kinds describes each Kind, by number.
var kinds = [...]struct {
	word, doc string
	metric    *metric.Metric // whose name conditions use for rows of the kind; nil if none
	totalOnly bool           // only totals have a meaning
}{
	Request:     {"request", "a metric of finished requests", nil, false},
	Stage:       {"stage", "", metric.Stage, false},
	Step:        {"step", "an annotated step on the host", metric.Step, false},
	GPU:         {"gpu", "where GPU time went", metric.GPU, true},
	Kernel:      {"kernel", "", metric.Kernel, false},
	Copy:        {"copy", "", metric.Copy, false},
	HostWait:    {"host wait", "a call that waits for the device", nil, false},
	Collective:  {"collective", "", nil, false},
	Operator:    {"operator", "host time in the operator, excluding operators within it", nil, false},
	OperatorGPU: {"operator gpu", "GPU time of the work that the operator launched itself", nil, false},
	HostCause:   {"host cause", "idle GPU time while the host did this", nil, true},
}

func (k Kind) String() string { return kinds[k].word }

// totalOnly reports whether only totals of the kind have a meaning.
func (k Kind) totalOnly() bool { return kinds[k].totalOnly }

// profiled reports whether profilers recorded the rows of the kind.
func (k Kind) profiled() bool { return k >= Step }

// kindsInWords explains the words for kinds that tables use.
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

// Gauge gauges a metric of both captures. If the metric has names, name selects one, or all of them together if it is
// "". number is one of the metric's numbers. It returns nil if the captures lack the metric.
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

// metricOf returns the metric that a row is about, or nil. All rows of a kind other than Request share one.
func (r *Row) metricOf() *metric.Metric {
	if r.Kind == Request {
		return metric.Named(r.Name)
	}
	return kinds[r.Kind].metric
}

// noticed reports whether users notice what the row is about.
func (r *Row) noticed() bool { return r.Kind == Request && r.metricOf().Weight >= metric.Noticed }

// sameWork compares the amount of work in two captures without steps. Dividing by their time
// would make the one that idles more look as if it computed less.
type sameWork struct {
	// ratio is how many times as often the second capture launches the kernels that both have; 1 if unknown.
	ratio float64
	known bool
}

// Kernels that both captures have must agree about the ratio: at least 80 % of launches within 3 %.
const (
	agreeing   = 0.8
	ratioError = 0.03
)

// matchWork finds the ratio of work of two sides, and scales the work of the second side by it.
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

// lengths says how long captures without steps are, and what their totals are divided by; it returns nil for captures with steps.
func (d *Diff) lengths() []string {
	if d.per != perSecond || min(d.Before.Ranks, d.After.Ranks) <= 0 || d.locate.captures() {
		return nil
	}
	text := "no steps in captures of " + compare.PairInWords(distribution.Between(d.Before.First, d.Before.Last), distribution.Between(d.After.First, d.After.Last))
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
