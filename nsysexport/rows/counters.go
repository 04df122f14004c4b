package rows

import "github.com/sgtrace/sgtrace/trace"

// A Metric is something that was sampled.
type Metric struct {
	Source string // "GPU Metrics [0]", a network card
	Name   string // "SMs Active [Throughput %]"
	GPU    int32  // the low byte of the id of a GPU's metrics; -1 is none
	typeID int64
	id     int64
}

// A Sample is the value of a metric. 24 bytes.
type Sample struct {
	Time   trace.Time
	Value  float64
	Metric int32 // index of the metrics that come with it
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

const nicPort = sampleValue + 1

// nicMetrics has counters of network cards. Rows have a start and an end; the
// value is that at the end.
var nicMetrics = tableSpec{
	names: []string{"NET_NIC_METRIC"},
	columns: []column{
		sampleTime:   {name: "end", or: "start", need: true},
		sampleType:   {name: "globalId", need: true},
		sampleMetric: {name: "nameId", need: true},
		sampleValue:  {name: "value", need: true},
		nicPort:      {name: "portId"},
	},
}

// Samples yields what was sampled from GPUs and network cards, and the list of
// metrics known so far, which grows.
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
	more := true
	var x Sample
	s.scan(&gpuMetrics, func(c *cursor) bool {
		if c.null(sampleTime) {
			return true // of the time between two captures
		}
		key := [2]int64{c.int(sampleType), c.int(sampleMetric)}
		at, ok := index[key]
		if !ok {
			at = int32(len(metrics))
			index[key] = at
			metrics = append(metrics, Metric{GPU: int32(key[0] & 0xff), typeID: key[0], id: key[1]})
		}
		x = Sample{Time: c.time(sampleTime), Value: c.float(sampleValue), Metric: at}
		more = yield(&x, metrics)
		return more
	})
	if more {
		s.nicSamples(metrics, yield)
	}
}

// nicSamples yields what network cards counted.
func (s *Source) nicSamples(metrics []Metric, yield func(*Sample, []Metric) bool) {
	type key struct{ card, port, name int64 }
	index := map[key]int32{}
	var x Sample
	s.scan(&nicMetrics, func(c *cursor) bool {
		k := key{c.int(sampleType), c.int(nicPort), c.int(sampleMetric)}
		at, ok := index[k]
		if !ok {
			at = int32(len(metrics))
			index[k] = at
			metrics = append(metrics, Metric{
				Source: nicName(k.card, k.port), Name: s.Options.Syms.Name(c.name(sampleMetric)), GPU: -1, typeID: k.card, id: k.name,
			})
		}
		x = Sample{Time: c.time(sampleTime), Value: c.float(sampleValue), Metric: at}
		return yield(&x, metrics)
	})
}

// A Sched is a thread that got a core, or lost it. 24 bytes.
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

// Scheds yields how threads were scheduled.
func (s *Source) Scheds(yield func(*Sched) bool) {
	var x Sched
	s.scan(&schedTable, func(c *cursor) bool {
		id := c.int(schedTID)
		x = Sched{c.time(schedTime), pidOf(id), tidOf(id), int32(c.int(schedCPU)), c.int(schedIn) != 0}
		return yield(&x)
	})
}
