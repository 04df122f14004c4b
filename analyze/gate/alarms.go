package gate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Alarms lists what a report must not show: kinds of findings, and a goodput that is too small.
type Alarms struct {
	kinds    []finding.Kind
	goodputs []leastGoodput
}

// A leastGoodput is the share of requests that must meet the SLO, 0 to 1.
type leastGoodput struct {
	text  string // as it was given
	share float64
}

// goodputAlarm begins the only alarm that is not a kind of finding: "goodput<95%".
const goodputAlarm = "goodput"

// ParseAlarms reads a list such as "straggler,errors,goodput<95%".
func ParseAlarms(text string) (*Alarms, error) {
	all := finders.Kinds()
	list := new(Alarms)
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if bound, is := strings.CutPrefix(word, goodputAlarm); is {
			share, err := parseGoodput(bound)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", word, err)
			}
			list.goodputs = append(list.goodputs, leastGoodput{word, share})
			continue
		}
		if !slices.Contains(all, word) {
			return nil, unknown("kind of finding", word, append(all, goodputAlarm))
		}
		list.kinds = order.With(list.kinds, finding.Kind(word))
	}
	return list, nil
}

// parseGoodput reads "<95%" as 0.95.
func parseGoodput(bound string) (share float64, err error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(bound), "%")
	number, isBelow := strings.CutPrefix(number, "<")
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isPercent || !isBelow || err != nil || !(percent > 0 && percent <= 100) {
		return 0, errors.New("want " + goodputAlarm + "<N%, with N up to 100")
	}
	return percent / 100, nil
}

// NeedSLO reports whether any of the alarms is about goodput.
func (list *Alarms) NeedSLO() bool { return len(list.goodputs) > 0 }

// Other returns the first alarm that is not among some kinds; "" if there is none.
func (list *Alarms) Other(kinds []string) string {
	for _, kind := range list.kinds {
		if !slices.Contains(kinds, string(kind)) {
			return string(kind)
		}
	}
	if len(list.goodputs) > 0 {
		return list.goodputs[0].text
	}
	return ""
}

// Judge says which of the alarms went off. A kind of finding that was not found passes if a finder
// of that kind had enough data, and none that applies to the inputs had too little. goodput may be
// nil if no alarm needs it.
func (list *Alarms) Judge(of *finders.Result, goodput *requests.Goodput) *Result {
	r := &Result{}
	for _, kind := range list.kinds {
		r.Judgments = append(r.Judgments, judgeKind(kind, of))
	}
	each := level / float64(max(1, len(list.goodputs)))
	for i := range list.goodputs {
		r.Judgments = append(r.Judgments, list.goodputs[i].judge(goodput, each))
	}
	return r
}

// newJudgment returns a judgment of a condition that compares nothing. It passes until it is changed.
func newJudgment(condition string) Judgment {
	return Judgment{Condition: condition, State: Passed, Before: math.NaN(), After: math.NaN(), Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
}

func judgeKind(kind finding.Kind, of *finders.Result) Judgment {
	j := newJudgment(string(kind))
	found := slices.DeleteFunc(slices.Clone(of.Findings), func(f finding.Finding) bool { return f.Kind != kind })
	looked, short, reason := lookedFor(kind, of)
	switch {
	case len(found) > 0:
		j.State, j.Measured, j.Reason = Failed, words.Counted(len(found), "finding"), found[0].Text
		if f := &found[0]; f.P.Known {
			j.P = f.P.P
		}
	case len(short) > 0:
		j.State, j.Reason = Unjudged, strings.Join(short, "; ")
	case !looked:
		j.State, j.Reason = Unjudged, reason
	}
	return j
}

// judge fails a goodput that is below the least, at a level of significance.
func (l *leastGoodput) judge(g *requests.Goodput, level float64) Judgment {
	j := newJudgment(l.text)
	judged := g.All.Judged()
	j.P, j.After = g.Below(l.share), g.All.Share()
	if judged > 0 {
		j.Measured = fmt.Sprintf("%.4g %% of %s", 100*g.All.Share(), words.Counted(int(judged), "request"))
	}
	switch {
	case math.IsNaN(j.P):
		j.State, j.Reason = Unjudged, fmt.Sprintf("not enough data: %s, %d needed", words.Counted(int(judged), "request"), requests.FewestJudged)
	case j.P <= level:
		j.State = Failed
	case j.After < l.share:
		j.Reason = "may be chance"
	}
	return j
}

// lookedFor reports whether any finder of a kind had enough data, which ones had too little, and why
// others do not apply.
func lookedFor(kind finding.Kind, of *finders.Result) (looked bool, short []string, reason string) {
	var reasons []string
	for i := range of.Checks {
		c := &of.Checks[i]
		if c.Finder.Kind != kind {
			continue
		}
		switch c.Check.State() {
		case finding.LookedAt:
			looked = true
		case finding.TooLittle:
			short = append(short, strings.Replace(c.Check.String(), "Not judged: ", "not enough data for ", 1))
		case finding.NotApplicable:
			reasons = order.With(reasons, c.Check.Reason)
		}
	}
	return looked, short, strings.Join(reasons, "; ")
}
