// Package metric is the one list of what is measured: what each metric is called, in which unit it
// is, of what, how it is measured, and whether more of it is better. Reports, gates, pages, options,
// and help read it, so that a metric is the same wherever it is printed.
//
// A metric of requests has all that it takes to measure it: a row in [Requests] or [Loads] is in
// the report of latencies, in comparisons, in conditions of gates, and on pages. What profilers
// recorded has many durations under one name, [Groups], which the reports about it measure.
package metric

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// A Metric is something that is measured.
type Metric struct {
	Name  string // as options, conditions, and programs write it: "ttft", "requests.rate"
	Title string // as people read it: "TTFT", "requests per second"
	Long  string // as sentences write it, of what devices do: "exposed communication"
	Doc   string // how it is measured
	// Word is what Title means, for people who do not know the word; "" of others.
	Word   string
	Unit   table.Unit
	Better Better
	// Numbers are what is told of many values, "p50", "p99", and others; nil of what is a mean.
	Numbers []string
	Named   Naming
	Weight  Weight
	Curve   bool // pages draw how it is distributed over requests

	// Of is the value that a request has, in ns; request.Unknown where nobody knows. It is set of
	// all metrics in Requests.
	Of func(*request.Metrics) int64
	// each are the values of a request that has several; nil if it has the one that Of returns.
	each func(*request.Set, *request.Request) []int64
	// Ratio is what a request adds to a mean, and of how much; ok is false if it adds nothing. It
	// is set of all metrics in Loads.
	Ratio func(*Arrival) (sum, of float64, ok bool)
	// During tells that the ratio depends on how long requests take, so that those that overlap are
	// alike.
	During bool
}

// Better tells which way a metric should go.
type Better uint8

const (
	Either Better = iota // it is what the load is
	Less
	More
)

// Naming tells whether conditions have a name behind that of the metric: "kernel.NAME.total".
type Naming uint8

const (
	NoName Naming = iota
	MayName
	MustName
)

// Weight tells how much a metric says to people.
type Weight uint8

const (
	Rest     Weight = iota
	Part            // of E2E
	Noticed         // by users
	Headline        // noticed, and on the first screen
)

// Numbers that are told of many values.
var (
	Spread = []string{"p50", "p99", "mean"}
	Sums   = []string{"p50", "p99", "mean", "total"}
	Total  = []string{"total"}
)

// An Arrival is a request, beside the one that came before it.
type Arrival struct {
	*request.Request
	Since int64 // ns since the start of the request before; -1 of the first
	SLO   bool  // Good and Judged say something
	Good  bool  // it meets the SLO
	// Judged tells that it is known whether it does.
	Judged bool
}

// String is the name of the metric.
func (m *Metric) String() string { return m.Name }

// Values appends the values of a request to a list.
func (m *Metric) Values(list []int64, s *request.Set, r *request.Request) []int64 {
	if m.each != nil {
		return append(list, m.each(s, r)...)
	}
	if v := m.Of(&r.Metrics); v >= 0 {
		list = append(list, v)
	}
	return list
}

// IsMean tells that a metric is a mean, which nothing else is told of.
func (m *Metric) IsMean() bool { return m.Numbers == nil }

// At returns the metrics of requests that weigh at least so much, in their order.
func At(least Weight) []*Metric {
	return slices.DeleteFunc(slices.Clone(Requests), func(m *Metric) bool { return m.Weight < least })
}

// Named returns the metric of requests with a name, in any case of letters; nil is none.
func Named(name string) *Metric {
	for _, m := range Requests {
		if strings.EqualFold(m.Name, name) {
			return m
		}
	}
	return nil
}

// Names are those of some metrics.
func Names(list []*Metric) (names []string) {
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

// All are all metrics, in the order of help.
func All() []*Metric { return slices.Concat(Requests, Loads, Speeds[:], Groups) }
