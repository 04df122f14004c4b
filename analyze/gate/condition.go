package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/internal/similar"
)

// A Condition holds if a metric grew or fell by more than a share of what it was.
type Condition struct {
	Text         string // as it was given
	metric       *metric.Metric
	name, number string
	below        bool
	bound        float64 // of after / before
}

// Conditions are judged together, since any of them may hold by chance.
type Conditions []Condition

// Parse reads conditions such as "ttft.p99>+10%" and "requests.rate<-5%".
func Parse(texts []string) (Conditions, error) {
	var list Conditions
	for _, text := range texts {
		c, err := parseCondition(text)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func parseCondition(text string) (Condition, error) {
	c := Condition{Text: strings.TrimSpace(text)}
	at := strings.LastIndexAny(c.Text, "<>") // names of kernels may contain these, too
	if at < 0 {
		return c, fmt.Errorf("condition %q: want METRIC>+N%% or METRIC<-N%%, such as ttft.p99>+10%%", text)
	}
	named, bound := strings.TrimSpace(c.Text[:at]), strings.TrimSpace(c.Text[at+1:])
	if c.metric, c.name, c.number = parse(named); c.metric == nil {
		return c, fmt.Errorf("condition %q: %w", text, unknown("metric", named, Metrics()))
	}
	percent, isPercent := strings.CutSuffix(bound, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	c.below = c.Text[at] == '<'
	switch {
	case !isPercent || err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		return c, fmt.Errorf("condition %q: want a change in percent behind %c, such as +10%%", text, c.Text[at])
	case c.below && (n > 0 || n <= -100 || percent[0] != '-'):
		return c, fmt.Errorf("condition %q: < takes a fall, from -0%% to -99%%", text)
	case !c.below && n < 0:
		return c, fmt.Errorf("condition %q: > takes a growth, +0%% or more", text)
	}
	c.bound = 1 + n/100
	return c, nil
}

// unknown returns the error for a word that is not among those known.
func unknown(what, word string, known []string) error {
	hint := "."
	if best := similar.Best(word, known); best != "" {
		hint = "; did you mean " + best + "?"
	}
	return fmt.Errorf("unknown %s %q%s Known: %s", what, word, hint, strings.Join(known, ", "))
}

// level is the largest probability that a run fails by chance, over all of its conditions together.
const level = 0.01

// Judge judges the conditions for two captures.
func (list Conditions) Judge(d *diff.Diff) *Result {
	r := &Result{Judgments: make([]Judgment, len(list))}
	each := level / float64(max(1, len(list)))
	p := make([]float64, len(list))
	for i := range list {
		p[i] = list[i].judge(d, each, &r.Judgments[i])
	}
	for i, corrected := range significance.Holm(p) {
		j := &r.Judgments[i]
		switch {
		case j.State != "":
		case corrected <= level:
			j.State = Failed
		default:
			j.State = Passed
			if list[i].holds(j.Ratio) {
				j.Reason = "may be chance"
			}
		}
		j.P = corrected
	}
	return r
}

// judge measures a condition. It returns the probability that the condition holds by chance, or NaN if
// the captures are too short to tell at the level; then it sets the state.
func (c *Condition) judge(d *diff.Diff, level float64, j *Judgment) float64 {
	j.Condition, j.Before, j.After, j.Ratio, j.Low, j.High = c.Text, math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	g := d.Gauge(c.metric, c.name, c.number)
	if g == nil {
		j.State, j.Reason = Unjudged, "the captures do not have it"
		return math.NaN()
	}
	j.Time, j.Before, j.After, j.Measured = g.Time, g.Before, g.After, g.Words()
	j.Ratio, j.Low, j.High = g.Change.Ratio, g.Change.Low, g.Change.High
	crossing := g.Above(c.bound)
	if c.below {
		crossing = g.Below(c.bound)
	}
	if short := g.Shortage(crossing, level); short != "" && !(crossing.P >= 1-level) { // otherwise it surely does not hold
		j.State, j.Reason = Unjudged, "not enough data: "+short
		return math.NaN()
	}
	return crossing.P
}

// holds reports whether the measured ratio is beyond the bound.
func (c *Condition) holds(ratio float64) bool {
	if c.below {
		return ratio < c.bound
	}
	return ratio > c.bound
}

// parse returns the metric that a text names, and the name and the statistic in the text; m is nil
// if there is none.
func parse(text string) (m *metric.Metric, name, number string) {
	for _, m := range metric.All() {
		rest, ok := strings.CutPrefix(text, m.Name)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		if m.IsMean() {
			if rest == "" {
				return m, "", ""
			}
			continue
		}
		name, number := "", strings.TrimPrefix(rest, ".")
		if at := strings.LastIndexByte(rest, '.'); at > 0 {
			name, number = rest[1:at], rest[at+1:]
		}
		if slices.Contains(m.Numbers, number) && (name == "" || m.Named != metric.NoName) && (name != "" || m.Named != metric.MustName) {
			return m, name, number
		}
	}
	return nil, "", ""
}

// spelled returns the ways to write a metric: "ttft.p99", "kernel.NAME.total".
func spelled(m *metric.Metric) []string {
	if m.IsMean() {
		return []string{m.Name}
	}
	var list []string
	for _, number := range m.Numbers {
		if m.Named != metric.MustName {
			list = append(list, m.Name+"."+number)
		}
	}
	for _, number := range m.Numbers {
		if m.Named != metric.NoName {
			list = append(list, m.Name+".NAME."+number)
		}
	}
	return list
}

// Metrics returns the ways to write all metrics.
func Metrics() []string {
	var list []string
	for _, m := range metric.All() {
		list = append(list, spelled(m)...)
	}
	return list
}
