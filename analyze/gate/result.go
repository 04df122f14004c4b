package gate

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Schema is the schema of the table of conditions.
const Schema = "sgtrace.report.gate/v1"

// State is the outcome of a condition.
type State string

const (
	Passed   State = "passed"
	Failed   State = "failed"
	Unjudged State = "not judged" // so it does not pass, either
)

// A Judgment is the outcome of one condition. Numbers are NaN if it has none. Times are in ns, and P
// is corrected for all conditions of the run (Holm).
type Judgment struct {
	Condition     string
	State         State
	Measured      string // in words
	Reason        string // why it could not be judged, or what was found; "" if there is nothing to say
	Time          bool   // Before and After are times
	Before, After float64
	Ratio         float64
	Low, High     float64 // 95 % confidence interval of Ratio
	P             float64
}

// A Result is the outcome of all conditions of a run.
type Result struct{ Judgments []Judgment }

// A Failure is the error of a gate that did not pass.
type Failure struct{ text string }

func (f *Failure) Error() string { return f.text }

// Err returns a [*Failure] unless all conditions pass.
func (r *Result) Err() error {
	var list []string
	for i := range r.Judgments {
		j := &r.Judgments[i]
		switch j.State {
		case Failed:
			list = append(list, fmt.Sprintf("%s: %s", j.Condition, words.JoinNonEmpty(": ", j.Measured, j.Reason)))
		case Unjudged:
			list = append(list, fmt.Sprintf("%s cannot be judged: %s", j.Condition, j.Reason))
		}
	}
	if list == nil {
		return nil
	}
	return &Failure{"gate failed: " + strings.Join(list, "; ")}
}

// title returns the result in one line.
func (r *Result) title() string {
	n := map[State]int{}
	for i := range r.Judgments {
		n[r.Judgments[i].State]++
	}
	verdict := "Gate passed"
	if n[Failed]+n[Unjudged] > 0 {
		verdict = "Gate failed"
	}
	var parts []string
	for _, state := range []State{Failed, Unjudged, Passed} {
		if n[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
		}
	}
	return verdict + ": " + strings.Join(parts, ", ")
}

// maxReason is the width of the column of reasons for people.
const maxReason = 100

// Report returns the table of conditions.
func (r *Result) Report() *table.Table {
	type J = Judgment
	return table.New(Schema, r.title(), r.Judgments, []table.Field[J]{
		table.TextColumn("condition", "condition that must not hold", func(j *J) string { return j.Condition }),
		table.TextColumn("state", "failed: the condition holds beyond chance; not judged: there is not enough data to tell; passed", func(j *J) string { return string(j.State) }),
		table.TextColumn("measured", "before -> after and the change with its 95 % confidence interval; or the number of findings", func(j *J) string { return j.Measured }),
		table.TextColumn("reason", "what was found, or why the condition cannot be judged", func(j *J) string { return j.Reason }).AtMost(maxReason),
		table.TextColumn("unit", "unit of before and after: ns or number", func(j *J) string {
			switch {
			case math.IsNaN(j.Before) && math.IsNaN(j.After):
				return ""
			case j.Time:
				return "ns"
			}
			return "number"
		}).InDetail(),
		table.NumberColumn("before", "value before", func(j *J) float64 { return j.Before }).InDetail(),
		table.NumberColumn("after", "value after", func(j *J) float64 { return j.After }).InDetail(),
		table.NumberColumn("ratio", "after / before", func(j *J) float64 { return j.Ratio }).InDetail(),
		table.NumberColumn("ratio low", "lower bound of the ratio's 95 % confidence interval", func(j *J) float64 { return j.Low }).InDetail(),
		table.NumberColumn("ratio high", "upper bound of the ratio's 95 % confidence interval", func(j *J) float64 { return j.High }).InDetail(),
		table.NumberColumn("p", "probability of the measured values if the change were exactly the threshold, corrected for all conditions (Holm)", func(j *J) float64 { return j.P }).InDetail(),
	})
}
