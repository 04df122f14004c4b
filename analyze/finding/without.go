package finding

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A Without is what a metric would have been without a finding: of all requests, or the mean
// of the steps of some ranks. Durations are in ns, shares from 0 to 1.
type Without struct {
	Metric    string // "e2e.p50", "e2e.p99", "ttft.p50", "ttft.p99", "goodput", or a metric of steps
	Unit      table.Unit
	Actual    float64
	Without   float64
	Low, High float64 // bounds of Without
}

// WithoutText says what would have been without f, or why that is unknown; "" if not asked for.
func (f *Finding) WithoutText() string {
	if f.NoWithout != "" {
		return "without it: not known, as " + f.NoWithout
	}
	if len(f.Without) == 0 {
		return ""
	}
	var list []string
	differs := false
	for i := range f.Without {
		list = append(list, f.Without[i].String())
		differs = differs || f.Without[i].Differs()
	}
	text := "without it: "
	if !differs {
		text += "nothing beyond noise: "
	}
	text += strings.Join(list, ", ")
	if len(f.Assumed) > 0 {
		text += "; assumes that " + strings.Join(f.Assumed, "; ")
	}
	return text
}

// Differs reports whether the metric would have differed by more than noise: the recorded value is outside the interval.
func (w *Without) Differs() bool { return w.Actual < w.Low || w.Actual > w.High }

// Value formats a value of the metric for people: "612 ms", "93 %".
func (w *Without) Value(v float64) string {
	if w.Unit == table.Share {
		return words.InPercent(v) + " %"
	}
	return words.Nearly(int64(v))
}

// Metrics of steps of profiles: means, or, if steps are unknown, the length of the whole recording.
const (
	Step        = "step"
	PrefillStep = "step.prefill"
	DecodeStep  = "step.decode"
	Span        = "span"
	Bubble      = "bubble" // part of the time in which stages of pipelines compute nothing
)

var titles = map[string]string{PrefillStep: "prefill step", DecodeStep: "decode step", Span: "all steps", Bubble: "bubbles"}

// Title returns the usual name of a metric: "TTFT p99", "decode step".
func (w *Without) Title() string {
	if title := titles[w.Metric]; title != "" {
		return title
	}
	name, percentile, found := strings.Cut(w.Metric, ".")
	if !found {
		return name
	}
	return strings.ToUpper(name) + " " + percentile
}

// String returns the metric for people: "TTFT p99 1,554 ms → 612 ms (580 ms to 640 ms)".
func (w *Without) String() string {
	return fmt.Sprintf("%s %s → %s (%s to %s)", w.Title(), w.Value(w.Actual), w.Value(w.Without), w.Value(w.Low), w.Value(w.High))
}
