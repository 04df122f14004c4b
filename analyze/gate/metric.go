package gate

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff"
)

// A metric is something that conditions can be about. Those with numbers are written with one
// behind them, "ttft.p99"; Named ones may have a name in between, "kernel.flash_fwd.total",
// or must if they have no sense without.
type metric struct {
	name    string
	named   naming
	numbers []string
	doc     string
	gauge   func(d *diff.Diff, name, number string) *diff.Gauge
}

// naming says whether a metric has a name behind it.
type naming uint8

const (
	noName naming = iota
	mayName
	mustName
)

var (
	spread = []string{"p50", "p99", "mean"}
	sums   = diff.Numbers
	total  = []string{"total"}
)

// metrics are all that conditions can be about, in the order of the help.
var metrics = []metric{
	{"e2e", noName, spread, "whole requests that finished", ofRequests("e2e")},
	{"ttft", noName, spread, "time to the first token", ofRequests("ttft")},
	{"itl", noName, spread, "gaps between tokens, each by itself", ofRequests("itl")},
	{"tpot", noName, spread, "mean gap between the tokens of a request", ofRequests("tpot")},
	{"queue", noName, spread, "waiting to be scheduled", ofRequests("queue")},
	{"stage", mustName, sums, "a stage of requests; total is per request and rank", ofRows(diff.Stage)},
	{"requests.rate", noName, nil, "requests per second", ofLoad(diff.RequestRate)},
	{"requests.unfinished", noName, nil, "share of requests that did not finish", ofLoad(diff.Unfinished)},
	{"prompt.mean", noName, nil, "prompt tokens per request", ofLoad(diff.PromptTokens)},
	{"output.mean", noName, nil, "output tokens per request", ofLoad(diff.OutputTokens)},
	{"goodput.share", noName, nil, "share of requests that meet `--slo`", ofLoad(diff.GoodShare)},
	{"goodput.rate", noName, nil, "requests per second that meet `--slo`", ofLoad(diff.GoodRate)},
	{"decode_step", noName, []string{"mean"}, "decode steps, compared with steps of the same batch size",
		func(d *diff.Diff, _, _ string) *diff.Gauge { return d.GaugeDecodeSteps() }},
	{"step", mayName, sums, "annotated steps, or those of a kind; of all batch sizes together", ofRows(diff.Step)},
	{"kernel", mayName, sums, "kernels, or those of a name; total is per step", ofRows(diff.Kernel)},
	{"copy", mayName, sums, "copies and fills of memory, or those of a name; total is per step", ofRows(diff.Copy)},
	{"gpu", mustName, total, "where the time of devices went: busy, idle, compute, ...; per step", ofRows(diff.GPU)},
}

func ofRequests(name string) func(*diff.Diff, string, string) *diff.Gauge {
	return func(d *diff.Diff, _, number string) *diff.Gauge { return d.GaugeRows(diff.Request, name, number) }
}

func ofRows(kind diff.Kind) func(*diff.Diff, string, string) *diff.Gauge {
	return func(d *diff.Diff, name, number string) *diff.Gauge { return d.GaugeRows(kind, name, number) }
}

func ofLoad(name string) func(*diff.Diff, string, string) *diff.Gauge {
	return func(d *diff.Diff, _, _ string) *diff.Gauge { return d.GaugeLoad(name) }
}

// parse finds the metric that a text names, and the name and number in it; nil if there is
// none.
func parse(text string) (m *metric, name, number string) {
	for i := range metrics {
		m := &metrics[i]
		rest, ok := strings.CutPrefix(text, m.name)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		if m.numbers == nil {
			if rest == "" {
				return m, "", ""
			}
			continue
		}
		name, number := "", strings.TrimPrefix(rest, ".")
		if at := strings.LastIndexByte(rest, '.'); at > 0 {
			name, number = rest[1:at], rest[at+1:]
		}
		if slices.Contains(m.numbers, number) && (name == "" || m.named != noName) && (name != "" || m.named != mustName) {
			return m, name, number
		}
	}
	return nil, "", ""
}

// spelled are the ways in which a metric is written: "ttft.p99", "kernel.NAME.total".
func (m *metric) spelled() []string {
	if m.numbers == nil {
		return []string{m.name}
	}
	var list []string
	for _, number := range m.numbers {
		if m.named != mustName {
			list = append(list, m.name+"."+number)
		}
	}
	for _, number := range m.numbers {
		if m.named != noName {
			list = append(list, m.name+".NAME."+number)
		}
	}
	return list
}

// Metrics are the ways in which all metrics are written.
func Metrics() []string {
	var list []string
	for i := range metrics {
		list = append(list, metrics[i].spelled()...)
	}
	return list
}

// Markdown is a table of the metrics.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| metric | of |\n|---|---|\n")
	for i := range metrics {
		b.WriteString("| `" + strings.Join(metrics[i].spelled(), "`, `") + "` | " + metrics[i].doc + " |\n")
	}
	return b.String()
}
