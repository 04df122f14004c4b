package rows

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Metric is a sampled quantity.
type Metric struct {
	Source string // "GPU Metrics [0]", a network card
	Name   string // "SMs Active [Throughput %]"
	GPU    int32  // low byte of the id of a GPU's metrics; -1 is none
	typeID int64
	id     int64
}

// A Sample is the value of a metric. 24 bytes.
type Sample struct {
	Time   trace.Time
	Value  float64
	Metric int32 // index in the list of metrics that is yielded with it
}

var metricNames = tableSpec{
	names: []string{"TARGET_INFO_GPU_METRICS"},
	columns: []column{
		{name: "typeId", need: true}, {name: "metricId", need: true}, {name: "metricName"}, {name: "typeName"},
	},
}

const (
	sampleTime = iota
	sampleType
	sampleMetric
	sampleValue
)

var gpuMetrics = tableSpec{
	names: []string{"GPU_METRICS"},
	columns: []column{
		sampleTime:   {name: "timestamp", or: "start", need: true},
		sampleType:   {name: "typeId", need: true},
		sampleMetric: {name: "metricId", need: true},
		sampleValue:  {name: "value", need: true},
	},
}

// Samples yields the samples of GPUs and network cards, and the growing list of metrics known so far.
func (s *Source) Samples(yield func(*Sample, []Metric) bool) {
	metrics, index := []Metric(nil), map[[2]int64]int32{}
	s.scan(&metricNames, func(c *cursor) bool {
		m := Metric{Source: c.text(3), Name: c.text(2), GPU: int32(c.int(0) & 0xff), typeID: c.int(0), id: c.int(1)}
		if _, ok := index[[2]int64{m.typeID, m.id}]; !ok {
			index[[2]int64{m.typeID, m.id}] = int32(len(metrics))
			metrics = append(metrics, m)
		}
		return true
	})
	var x Sample
	more := s.scan(&gpuMetrics, func(c *cursor) bool {
		if c.null(sampleTime) {
			return true // covers the time between two captures
		}
		key := [2]int64{c.int(sampleType), c.int(sampleMetric)}
		at := order.At(index, &metrics, key, func() Metric { return Metric{GPU: int32(key[0] & 0xff), typeID: key[0], id: key[1]} })
		x = Sample{Time: c.time(sampleTime), Value: c.float(sampleValue), Metric: at}
		return yield(&x, metrics)
	})
	if more {
		s.networkSamples(metrics, yield)
	}
}

// A Sched is an event at which a thread got or lost a core. 24 bytes.
type Sched struct {
	Time     trace.Time
	PID, TID int32
	CPU      int32 // -1 is unknown
	In       bool  // the thread runs from now on
}

const (
	schedTime = iota
	schedTID
	schedCPU
	schedIn
)

var schedTable = tableSpec{
	names: []string{"SCHED_EVENTS"},
	columns: []column{
		schedTime: {name: "start", need: true},
		schedTID:  {name: "globalTid", none: noID},
		schedCPU:  {name: "cpu", none: -1},
		schedIn:   {name: "isSchedIn", need: true},
	},
}

// Scheds yields the scheduling of threads.
func (s *Source) Scheds(yield func(*Sched) bool) {
	var x Sched
	s.scan(&schedTable, func(c *cursor) bool {
		id := c.int(schedTID)
		x = Sched{c.time(schedTime), pidOf(id), tidOf(id), int32(c.int(schedCPU)), c.int(schedIn) != 0}
		return yield(&x)
	})
}
