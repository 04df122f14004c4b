package gate

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Condition{
		"ttft.p99>+10%":                       {number: "p99", bound: 1.1},
		" ttft.p99 > 10 % ":                   {number: "p99", bound: 1.1},
		"requests.rate<-5%":                   {below: true, bound: 0.95},
		"kernel.total>+3%":                    {number: "total", bound: 1.03},
		"kernel.void gemm<int>(a.b).mean>+0%": {name: "void gemm<int>(a.b)", number: "mean", bound: 1},
		"stage.decode_loop.p50>+150%":         {name: "decode_loop", number: "p50", bound: 2.5},
		"step.decode bs=5-8.mean>+2.5%":       {name: "decode bs=5-8", number: "mean", bound: 1.025},
	} {
		list, err := Parse([]string{text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := list[0]
		if got.name != want.name || got.number != want.number || got.below != want.below || math.Abs(got.bound-want.bound) > 1e-12 || got.Text != strings.TrimSpace(text) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for text, says := range map[string]string{
		"":                     "want METRIC>+N%",
		"ttft.p99":             "want METRIC>+N%",
		"ttft>+10%":            "unknown metric",
		"ttft.p98>+10%":        "did you mean ttft.p9",
		"stage.mean>+10%":      "unknown metric",
		"ttft.x.mean>+10%":     "unknown metric",
		"nothing.like.it>+1%":  "Known: e2e.p50, ",
		"requests.rate.p50>1%": "unknown metric",
		"ttft.p99>500ms":       "change in percent",
		"ttft.p99>NaN%":        "change in percent",
		"ttft.p99>%":           "change in percent",
		"ttft.p99>-5%":         "takes a growth",
		"ttft.p99<5%":          "takes a fall",
		"ttft.p99<-100%":       "takes a fall",
	} {
		if _, err := Parse([]string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	for _, text := range Metrics() {
		if _, err := Parse([]string{text + ">+1%"}); err != nil {
			t.Error(err)
		}
	}
}

// docs/GATE.md lists the metrics.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| metric | of |\n|---|---|\n")
	for _, m := range metric.All() {
		b.WriteString("| `" + strings.Join(spelled(m), "`, `") + "` | " + m.Doc + " |\n")
	}
	testset.ComparePage(t, "../../docs/GATE.md", b.String())
}

// A goodput below the limit raises the alarm if that is not due to chance; a few requests are too little data.
func TestGoodputAlarm(t *testing.T) {
	alarms, err := ParseAlarms("errors, goodput<95%,goodput < 80 %")
	if err != nil || !alarms.NeedSLO() || len(alarms.goodputs) != 2 || alarms.goodputs[1].share != 0.8 {
		t.Fatal(alarms, err)
	}
	for _, text := range []string{"goodput", "goodput<95", "goodput>95%", "goodput<-5%", "goodput<0%", "goodput<101%", "goodput<x%"} {
		if _, err := ParseAlarms(text); err == nil || !strings.Contains(err.Error(), "want goodput<N%") {
			t.Errorf("%s: %v", text, err)
		}
	}
	objective, err := requests.ParseObjectives("ttft=100ns")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		requests, missEach int // every n-th request misses; 0 is none
		state              State
		reason             string
	}{
		{1000, 0, Passed, ""}, {1000, 5, Failed, ""}, {1000, 21, Passed, ""}, {1000, 19, Passed, "may be chance"}, {1000, 1, Failed, ""},
		{29, 1, Unjudged, "not enough data: 29 requests, 30 needed"}, {30, 1, Failed, ""}, {0, 0, Unjudged, "not enough data: 0 requests, 30 needed"},
	} {
		set := &request.Set{}
		for i := range c.requests {
			r := request.Request{Status: request.Finished, Metrics: request.Metrics{UserTTFT: 50}}
			if c.missEach > 0 && i%c.missEach == 0 {
				r.Metrics.UserTTFT = 200
			}
			set.Requests = append(set.Requests, r)
		}
		alarm := &leastGoodput{"goodput<95%", 0.95}
		if j := alarm.judge(requests.MeasureGoodput(set, objective), level); j.State != c.state || j.Reason != c.reason {
			t.Errorf("every %d of %d misses: %s, %q", c.missEach, c.requests, j.State, j.Reason)
		}
	}
}

func TestKinds(t *testing.T) {
	if _, err := ParseAlarms("errors,stragler"); err == nil || !strings.Contains(err.Error(), "did you mean straggler?") {
		t.Error(err)
	}
	alarms, err := ParseAlarms("errors, straggler,errors,loss,gpu")
	if err != nil || !slices.Equal(alarms.kinds, []finding.Kind{finding.Errors, finding.Straggler, finding.Loss, finding.GPU}) {
		t.Fatal(alarms, err)
	}
	checked := func(kind finding.Kind, check finding.Check) finders.FinderCheck {
		return finders.FinderCheck{Finder: &finders.Finder{Kind: kind}, Check: check}
	}
	r := alarms.Judge(&finders.Result{
		Findings: []finding.Finding{{Kind: finding.Load, Text: "load"}, {Kind: finding.Straggler, Text: "TP1 is late"}},
		Checks: []finders.FinderCheck{
			checked(finding.Errors, finding.Check{What: "errors", Of: "request", N: 5, Needed: 1}),
			checked(finding.Errors, finding.Check{What: "calls", Reason: "the input has no profiles"}),
			checked(finding.Straggler, finding.Check{What: "ranks", Of: "step", N: 5, Needed: 100}),
			checked(finding.Loss, finding.Check{What: "losses", Of: "span", N: 5, Needed: 1}),
			checked(finding.Loss, finding.Check{What: "other losses", Of: "span", N: 5, Needed: 100}),
			checked(finding.GPU, finding.Check{What: "devices", Reason: "the input has no profiles"}),
		},
	}, nil)
	want := []struct {
		state  State
		reason string
	}{
		{Passed, ""}, {Failed, "TP1 is late"}, {Unjudged, "not enough data for other losses: 5 spans, 100 needed"}, {Unjudged, "the input has no profiles"},
	}
	for i, w := range want {
		if j := r.Judgments[i]; j.State != w.state || j.Reason != w.reason {
			t.Errorf("%s: %s, %q; want %s, %q", j.Condition, j.State, j.Reason, w.state, w.reason)
		}
	}
	var failure *Failure
	if !errors.As(r.Err(), &failure) || !strings.Contains(failure.Error(), "straggler: 1 finding: TP1 is late; loss cannot be judged: not enough data") {
		t.Error(r.Err())
	}
	if title := r.Report().Title; title != "Gate failed: 1 failed, 2 not judged, 1 passed" {
		t.Error(title)
	}
	r.Judgments = r.Judgments[:1]
	if r.Err() != nil {
		t.Error(r.Err())
	}
}

// Every condition that parses has a bound on the right side of 1, and parses to the same again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"ttft.p99>+10%", "kernel.a<b>.total<-5%", "stage..p50>1%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse([]string{text})
		if err != nil {
			return
		}
		c := list[0]
		if !(c.bound > 0) || c.below && c.bound > 1 || !c.below && c.bound < 1 || c.metric.Named == metric.MustName && c.name == "" {
			t.Errorf("%q: %+v", text, c)
		}
		again, err := Parse([]string{c.Text})
		if err != nil || again[0] != c {
			t.Errorf("%q is read as %+v, and then as %+v (%v)", text, c, again, err)
		}
	})
}
