package change

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// name returns what people call the place of a shift: a lead rank by its DP
// rank, as it stands for all that work beside it, or by its role if there is no
// other. Only a rank that is late is meant alone.
func (f *Shift) name() string {
	if f.Scope != place.OneRank || f.Metric == LatenessChanged {
		return f.Where.String()
	}
	return f.DP()
}

// Sentence says in plain words what happened: the first shift with its time, how
// arrivals changed with it, and what it did to what users see and to the stages.
func (c *Change) Sentence() string {
	first := &c.Shifts[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", first.subject(), first.change())
	if first.Metric != PaceChanged {
		fmt.Fprintf(&b, " at %s", c.when())
	}
	loads, latencies := 1, 2
	for i := range c.Shifts[1:] {
		f := &c.Shifts[1+i]
		left := &latencies
		if f.Metric.isLoad() {
			left = &loads
		}
		if *left == 0 || f.Metric.isLoad() && f.Metric != ArrivalsChanged {
			continue
		}
		*left--
		subject := f.subject()
		if rest, ok := strings.CutPrefix(subject, first.Name+"'s "); ok {
			subject = "its " + rest
		}
		fmt.Fprintf(&b, "; %s %s", subject, f.change())
	}
	return b.String()
}

// subject says what changed.
func (f *Shift) subject() string {
	of := f.Name + "'s "
	if f.Scope == place.Everywhere {
		of = ""
	}
	switch f.Metric {
	case ShareChanged:
		return of + "share of requests"
	case ArrivalsChanged:
		return "arrivals"
	case RunningChanged:
		if f.Scope == place.Everywhere {
			return "requests under way"
		}
		return of + "running requests"
	case CachedChanged:
		return CachedTokens
	case YieldChanged:
		return StepYield
	case OutputChanged:
		return OutputLength
	case PromptChanged:
		return PromptLength
	case AbortsChanged:
		return "share of requests that are given up"
	case RefusedChanged:
		return "share of requests that full queues turn away"
	case RetractedChanged:
		return "share of requests that are retracted"
	case PaceChanged:
		return f.paceSubject()
	case LatenessChanged:
		return of + "lateness in " + f.Stage
	case TailChanged:
		return fmt.Sprintf("%s%s beyond %s", of, f.stageWords(), words.Nearly(f.Limit))
	}
	return of + f.stageWords() + " p50"
}

// stageWords is what people call the duration that changed.
func (f *Shift) stageWords() string {
	if f.Stage == "ttft" || f.Stage == "tpot" || f.Stage == "e2e" {
		return strings.ToUpper(f.Stage)
	}
	return f.Stage
}

// change says from what to what it did.
func (f *Shift) change() string {
	if f.Metric == PaceChanged {
		return f.paceChange()
	}
	verb := "fell"
	if f.rises() {
		verb = "rose"
	}
	if f.Back {
		verb += " back"
	}
	before, after := f.values()
	return fmt.Sprintf("%s from %s to %s", verb, before, after)
}

// values prints what a shift is about before and after: the unit once, unless they
// are so different that each has its own.
func (f *Shift) values() (before, after string) {
	x, y := f.Before.value(f.Metric), f.After.value(f.Metric)
	switch f.Metric {
	case ShareChanged, TailChanged, CachedChanged, AbortsChanged, RefusedChanged, RetractedChanged:
		return words.InPercent(x), words.InPercent(y) + " %"
	case ArrivalsChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y) + " /s"
	case OutputChanged, PromptChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y) + " tokens"
	case RunningChanged, YieldChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y)
	}
	unit, size := words.UnitFor(int64(max(x, y)))
	if least := min(x, y) / size; least > 0 && least < 0.1 {
		return words.Nearly(int64(x)), words.Nearly(int64(y))
	}
	return words.ThreeDigits(x / size), words.ThreeDigits(y/size) + " " + unit
}

// when prints the time of a change, as precisely as it is known.
func (c *Change) when() string { return words.When(c.Time, c.First, c.Last) }
