package rows

import (
	"fmt"
	"strconv"
)

const (
	countEnd = iota
	countDevice
	countList
	countIndex
	countValue
	countPort
)

// countColumns are the columns of all tables with counters of network devices. Rows have a start and an end;
// the value is the one at the end.
var countColumns = []column{
	countEnd:    {name: "end", or: "start", need: true},
	countDevice: {name: "globalId", need: true},
	countList:   {name: "metricsListId", need: true},
	countIndex:  {name: "metricsIdx", need: true},
	countValue:  {name: "value", need: true},
	countPort:   {name: "portId", none: -1},
}

// nicMetrics has counters of network cards.
var nicMetrics = tableSpec{names: []string{"NET_NIC_METRIC"}, columns: countColumns}

// switchMetrics has counters of InfiniBand switches.
var switchMetrics = tableSpec{names: []string{"NET_IB_SWITCH_METRIC"}, columns: countColumns}

// networkNames maps the numbers of counters to their names.
var networkNames = tableSpec{
	names: []string{"TARGET_INFO_NETWORK_METRICS"},
	columns: []column{
		{name: "metricsListId", need: true}, {name: "metricsIdx", need: true}, {name: "name", need: true}, {name: "unit"},
	},
}

// nicNumbers maps the ids of cards' counters to cards.
var nicNumbers = tableSpec{
	names:   []string{"NIC_ID_MAP"},
	columns: []column{{name: "globalId", need: true}, {name: "nicId", need: true}},
}

// nicNames holds the names of cards. Before schema 3.7.2, their ids were those of the counters.
var nicNames = tableSpec{
	names:   []string{"TARGET_INFO_NIC_INFO"},
	columns: []column{{name: "nicId", none: -1}, {name: "name", need: true}, {name: "globalId", none: -1}},
}

// A counted identifies a counter of a network device: one metric of one of its ports.
type counted struct{ device, port, list, index int64 }

// networkSamples yields the counters of network cards and switches.
func (s *Source) networkSamples(metrics []Metric, yield func(*Sample, []Metric) bool) {
	names, cards := s.networkNames(), s.nicNames()
	for _, table := range []struct {
		spec *tableSpec
		kind string
	}{{&nicMetrics, "NIC"}, {&switchMetrics, "InfiniBand switch"}} {
		index := map[counted]int32{}
		var x Sample
		more := s.scan(table.spec, func(c *cursor) bool {
			k := counted{c.int(countDevice), c.int(countPort), c.int(countList), c.int(countIndex)}
			at, ok := index[k]
			if !ok {
				at = int32(len(metrics))
				index[k] = at
				metrics = append(metrics, k.metric(table.kind, cards, names))
			}
			x = Sample{Time: c.time(countEnd), Value: c.float(countValue), Metric: at}
			return yield(&x, metrics)
		})
		if !more {
			return
		}
	}
}

// metric returns the metric of a counter, for a kind of device.
func (k counted) metric(kind string, devices map[int64]string, names map[[2]int64]string) Metric {
	source, ok := devices[k.device]
	if !ok {
		source = fmt.Sprintf("%s %#x", kind, uint64(k.device))
	}
	if k.port >= 0 {
		source += " port " + strconv.FormatInt(k.port, 10)
	}
	name, ok := names[[2]int64{k.list, k.index}]
	if !ok {
		name = fmt.Sprintf("metric %d of list %d", k.index, k.list)
	}
	return Metric{Source: source, Name: name, GPU: -1, typeID: k.device, id: k.index}
}

// networkNames returns the names of counters by list and index: "Bytes sent [bytes]".
func (s *Source) networkNames() map[[2]int64]string {
	names := map[[2]int64]string{}
	s.scan(&networkNames, func(c *cursor) bool {
		name := c.text(2)
		if unit := c.text(3); unit != "" {
			name += " [" + unit + "]"
		}
		names[[2]int64{c.int(0), c.int(1)}] = name
		return true
	})
	return names
}

// nicNames returns the names of network cards by the id of their counters.
func (s *Source) nicNames() map[int64]string {
	byNumber, byID := map[int64]string{}, map[int64]string{}
	s.scan(&nicNames, func(c *cursor) bool {
		byNumber[c.int(0)] = c.text(1)
		if id := c.int(2); id != -1 {
			byID[id] = c.text(1)
		}
		return true
	})
	s.scan(&nicNumbers, func(c *cursor) bool {
		if name, ok := byNumber[c.int(1)]; ok {
			byID[c.int(0)] = name
		}
		return true
	})
	return byID
}
