package diff

import (
	"strings"

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

// of returns the metric that a row is of; nil is none. Those of a kind have one that is theirs together.
func (r *Row) of() *metric.Metric {
	if r.Kind == Request {
		return metric.Named(r.Name)
	}
	return kinds[r.Kind].metric
}

// noticed reports whether users notice what the row is about.
func (r *Row) noticed() bool { return r.Kind == Request && r.of().Weight >= metric.Noticed }
