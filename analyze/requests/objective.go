package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
)

// An Objective is a limit on a latency of a request.
type Objective struct {
	Metric string // "ttft"
	Limit  int64  // ns
	of     func(*request.Metrics) int64
}

// objectiveMetrics are the metrics that objectives may limit. TTFT is as seen by the user.
var objectiveMetrics = metric.At(metric.Noticed)

// ParseObjectives parses objectives: "ttft=500ms,itl=50ms".
func ParseObjectives(text string) ([]Objective, error) {
	var list []Objective
	for part := range strings.SplitSeq(text, ",") {
		name, limit, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, fmt.Errorf("%q: want METRIC=DURATION,... such as ttft=500ms,itl=50ms", part)
		}
		o := Objective{Metric: strings.TrimSpace(name)}
		if i := slices.IndexFunc(objectiveMetrics, func(m *metric.Metric) bool { return m.Name == o.Metric }); i >= 0 {
			o.of = objectiveMetrics[i].AsSeen().Of
		}
		d, err := time.ParseDuration(strings.TrimSpace(limit))
		switch {
		case o.of == nil:
			return nil, fmt.Errorf("unknown metric %q%s Known: %s", o.Metric, cmp.Or(similar.Hint(o.Metric, metric.Names(objectiveMetrics)), "."), strings.Join(metric.Names(objectiveMetrics), ", "))
		case err != nil || d <= 0:
			return nil, fmt.Errorf("%s=%s: want a duration above 0 with its unit, such as 500ms", o.Metric, limit)
		case slices.ContainsFunc(list, func(p Objective) bool { return p.Metric == o.Metric }):
			return nil, fmt.Errorf("%s is there twice", o.Metric)
		}
		o.Limit = int64(d)
		list = append(list, o)
	}
	return list, nil
}

// String returns the objective for people: "ttft <= 500 ms".
func (o *Objective) String() string { return o.Metric + " <= " + words.Nearly(o.Limit) }

// ObjectivesInWords lists objectives: "ttft <= 500 ms, itl <= 50 ms".
func ObjectivesInWords(list []Objective) string {
	texts := order.EachRow(list, (*Objective).String)
	return strings.Join(texts, ", ")
}

// FormatObjectives formats objectives for [ParseObjectives]: "ttft=500ms,itl=50ms".
func FormatObjectives(list []Objective) string {
	texts := order.EachRow(list, func(o *Objective) string { return o.Metric + "=" + time.Duration(o.Limit).String() })
	return strings.Join(texts, ",")
}

// State is the outcome of a request for an objective, or for all.
type State uint8

const (
	Undecided State = iota // the request has not ended, or the dump does not have the latency
	Met
	Missed
)

// Of judges one request. One that failed or was aborted misses every objective; one that has not ended misses those
// whose limit it already exceeds. A request with one token has no gaps, so it keeps any limit on them.
func (o *Objective) Of(r *request.Request) State {
	value := o.of(&r.Metrics)
	switch {
	case r.Status == request.Failed || r.Status == request.Aborted:
		return Missed
	case value > o.Limit:
		return Missed
	case r.Status == request.Unfinished:
		return Undecided
	case value >= 0:
		return Met
	case (o.Metric == metric.ITL.Name || o.Metric == metric.TPOT.Name) && r.Metrics.CompletionTokens >= 0 && r.Metrics.CompletionTokens <= 1:
		return Met
	}
	return Undecided
}

// Judge judges a request by all objectives.
func Judge(list []Objective, r *request.Request) State {
	all := Met
	for i := range list {
		switch list[i].Of(r) {
		case Missed:
			return Missed
		case Undecided:
			all = Undecided
		}
	}
	return all
}
