package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/trace"
)

// OTLPMetrics is metrics in dumps of OTLP, as parts of these: a document for each resource. They become the series that Prometheus would have.
//
// # What is odd
//
//   - Scraped metrics have the servers' names, but the buckets, the sum, and the count of a histogram are one metric, and a counter
//     may have lost its "_total". The scraped server is in the resource: service.instance.id and service.name are the labels instance and job.
//   - Values with delta temporality are added up. An exponential histogram becomes one with powers of two as its bounds.
//   - A point with the flag 1 has no value.
var OTLPMetrics = &format.Format{
	Name:   "OTLP metrics",
	Noun:   "OTLP dump",
	Doc:    "metrics in dumps of OpenTelemetry",
	For:    "'sgtrace report'",
	Sniff:  func([]byte) bool { return false }, // only used for parts of dumps
	Index:  indexOTLP,
	Series: true,
}

// The documents of OTLP, with the names in its JSON and in protobuf. 64-bit numbers may be texts.
type otlpDocument struct {
	ResourceMetrics []struct {
		Resource     struct{ Attributes otlpAttributes }
		ScopeMetrics []otlpScope `json:"scopeMetrics"`
		Snake        []otlpScope `json:"scope_metrics"`
		Old          []otlpScope `json:"instrumentationLibraryMetrics"`
	} `json:"resourceMetrics"`
}

type otlpScope struct{ Metrics []otlpMetric }

type otlpMetric struct {
	Name, Unit       string
	Gauge            *otlpData
	Sum              *otlpData
	Histogram        *otlpData
	Exponential      *otlpData `json:"exponentialHistogram"`
	SnakeExponential *otlpData `json:"exponential_histogram"`
	Summary          *otlpData
}

type otlpData struct {
	Points           []otlpPoint     `json:"dataPoints"`
	SnakePoints      []otlpPoint     `json:"data_points"`
	Temporality      json.RawMessage `json:"aggregationTemporality"`
	SnakeTemporality json.RawMessage `json:"aggregation_temporality"`
	Monotonic        bool            `json:"isMonotonic"`
	SnakeMonotonic   bool            `json:"is_monotonic"`
}

type otlpPoint struct {
	Attributes   otlpAttributes
	Time         otlpNumber `json:"timeUnixNano"`
	SnakeTime    otlpNumber `json:"time_unix_nano"`
	Double       *otlpFloat `json:"asDouble"`
	SnakeDouble  *otlpFloat `json:"as_double"`
	Int          *otlpFloat `json:"asInt"`
	SnakeInt     *otlpFloat `json:"as_int"`
	Flags        int
	Count        otlpNumber
	Sum          *otlpFloat
	Counts       []otlpNumber `json:"bucketCounts"`
	SnakeCounts  []otlpNumber `json:"bucket_counts"`
	Bounds       []otlpFloat  `json:"explicitBounds"`
	SnakeBounds  []otlpFloat  `json:"explicit_bounds"`
	Scale        int
	Zero         otlpNumber `json:"zeroCount"`
	SnakeZero    otlpNumber `json:"zero_count"`
	Positive     otlpBuckets
	Quantiles    []otlpQuantile `json:"quantileValues"`
	SnakeQuantes []otlpQuantile `json:"quantile_values"`
}

type otlpBuckets struct {
	Offset      int
	Counts      []otlpNumber `json:"bucketCounts"`
	SnakeCounts []otlpNumber `json:"bucket_counts"`
}

type otlpQuantile struct{ Quantile, Value otlpFloat }

// An otlpNumber is a whole number, or a text with one.
type otlpNumber int64

func (n *otlpNumber) UnmarshalJSON(b []byte) error {
	x, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if *n = otlpNumber(x); err != nil {
		return fmt.Errorf("%.30s is no whole number", b)
	}
	return nil
}

// An otlpFloat is a number, or a text with one: "NaN".
type otlpFloat float64

func (n *otlpFloat) UnmarshalJSON(b []byte) error {
	x, err := strconv.ParseFloat(strings.Replace(string(bytes.Trim(b, `"`)), "Infinity", "Inf", 1), 64)
	if *n = otlpFloat(x); err != nil {
		return fmt.Errorf("%.30s is no number", b)
	}
	return nil
}

// otlpAttributes are the attributes that are texts, numbers, or booleans.
type otlpAttributes map[string]string

func (a *otlpAttributes) UnmarshalJSON(b []byte) error {
	var list []struct {
		Key   string
		Value map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*a = otlpAttributes{}
	for _, x := range list {
		for _, key := range [...]string{"stringValue", "intValue", "doubleValue", "boolValue"} {
			raw, ok := x.Value[key]
			var text string
			switch {
			case !ok:
			case json.Unmarshal(raw, &text) == nil:
				(*a)[x.Key] = text
			default:
				(*a)[x.Key] = string(raw)
			}
		}
	}
	return nil
}

// indexOTLP reads the metrics of a dump.
func indexOTLP(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := &otlpReader{reader: newReader(opt.Series.Fill(in.Name, "OTLP metrics"), in.Name, opt.Diags), sums: map[string]float64{}}
	d := json.NewDecoder(content)
	for {
		var doc otlpDocument
		err = d.Decode(&doc)
		var odd *json.UnmarshalTypeError
		if err != nil && !errors.As(err, &odd) {
			break
		}
		if err != nil { // the rest of the document is read
			opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
		}
		for _, x := range doc.ResourceMetrics {
			where := placeLabels(x.Resource.Attributes)
			for _, s := range slices.Concat(x.ScopeMetrics, x.Snake, x.Old) {
				for i := range s.Metrics {
					r.metric(&s.Metrics[i], where)
				}
			}
		}
	}
	r.told()
	if err != io.EOF {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	return &format.Source{}, content.Close()
}

// An otlpReader reads the metrics of a dump. sums are the running sums of deltas.
type otlpReader struct {
	*reader
	sums map[string]float64
}

// fromResource maps attributes of a resource to Prometheus's labels.
var fromResource = [...][2]string{{"service.instance.id", "instance"}, {"service.name", "job"}, {"k8s.pod.name", "pod"}, {"k8s.namespace.name", "namespace"}, {"k8s.node.name", "node"}, {"k8s.container.name", "container"}}

// placeLabels returns the labels for a resource. If nothing else names the source, the host does.
func placeLabels(resource otlpAttributes) map[string]string {
	labels := map[string]string{}
	for _, x := range fromResource {
		if v := resource[x[0]]; v != "" {
			labels[x[1]] = v
		}
	}
	if host := resource["host.name"]; host != "" {
		labels["node"] = cmp.Or(labels["node"], host)
		if labels["pod"] == "" && labels["instance"] == "" {
			labels["instance"] = host
		}
	}
	if labels["pod"] == "" && labels["instance"] == "" {
		labels["instance"] = labels["job"]
	}
	return labels
}

// metric reads a metric.
func (r *otlpReader) metric(m *otlpMetric, where map[string]string) {
	name := prometheusName(m.Name, m.Unit)
	switch {
	case m.Gauge != nil:
		r.each(m.Gauge, where, func(p *otlpPoint, labels map[string]string) { r.number(name, "gauge", p, labels, false) })
	case m.Sum != nil && (m.Sum.Monotonic || m.Sum.SnakeMonotonic):
		if !strings.HasSuffix(name, "_total") {
			name += "_total"
		}
		r.each(m.Sum, where, func(p *otlpPoint, labels map[string]string) { r.number(name, "counter", p, labels, m.Sum.delta()) })
	case m.Sum != nil:
		r.each(m.Sum, where, func(p *otlpPoint, labels map[string]string) { r.number(name, "gauge", p, labels, m.Sum.delta()) })
	case m.Histogram != nil:
		r.each(m.Histogram, where, func(p *otlpPoint, labels map[string]string) { r.histogram(name, p, labels, m.Histogram.delta()) })
	case m.Exponential != nil || m.SnakeExponential != nil:
		data := cmp.Or(m.Exponential, m.SnakeExponential)
		r.each(data, where, func(p *otlpPoint, labels map[string]string) { r.exponential(name, p, labels, data.delta()) })
	case m.Summary != nil:
		r.each(m.Summary, where, func(p *otlpPoint, labels map[string]string) { r.summary(name, p, labels) })
	}
}

// delta reports whether values are increments.
func (d *otlpData) delta() bool {
	switch string(bytes.Trim(slices.Concat(d.Temporality, d.SnakeTemporality), `"`)) {
	case "1", "AGGREGATION_TEMPORALITY_DELTA":
		return true
	}
	return false
}

// each calls f for each point with a value, with its labels.
func (r *otlpReader) each(d *otlpData, where map[string]string, f func(*otlpPoint, map[string]string)) {
	const noValue = 1
	for _, list := range [...][]otlpPoint{d.Points, d.SnakePoints} {
		for i := range list {
			p := &list[i]
			if p.Time = cmp.Or(p.Time, p.SnakeTime); p.Time <= 0 || p.Flags&noValue != 0 {
				continue
			}
			labels := make(map[string]string, len(where)+len(p.Attributes)+1)
			for k, v := range where {
				labels[k] = v
			}
			for k, v := range p.Attributes {
				labels[plainName(k)] = v
			}
			f(p, labels)
		}
	}
}

// put adds a value; a delta is added to the sum of those before.
func (r *otlpReader) put(name, kind string, labels map[string]string, p *otlpPoint, value float64, delta bool) {
	b, err := json.Marshal(labels)
	if err != nil || math.IsInf(value, 0) {
		return
	}
	key := name + string(b)
	if delta {
		r.sums[key] += value
		value = r.sums[key]
	}
	r.add(r.seriesOf(key, name, kind, labels), trace.Time(p.Time), value)
}

func (r *otlpReader) number(name, kind string, p *otlpPoint, labels map[string]string, delta bool) {
	if v := cmp.Or(p.Double, p.SnakeDouble, p.Int, p.SnakeInt); v != nil {
		r.put(name, kind, labels, p, float64(*v), delta)
	}
}

// histogram adds the series of a Prometheus histogram: the number of values up to each bound, the count, and the sum.
func (r *otlpReader) histogram(name string, p *otlpPoint, labels map[string]string, delta bool) {
	counts, bounds := slices.Concat(p.Counts, p.SnakeCounts), slices.Concat(p.Bounds, p.SnakeBounds)
	sum := otlpNumber(0)
	for i, n := range counts[:min(len(counts), len(bounds))] {
		sum += n
		r.bucket(name, p, labels, strconv.FormatFloat(float64(bounds[i]), 'g', -1, 64), sum, delta)
	}
	r.whole(name, p, labels, delta)
}

// exponential adds the same series for a histogram whose bounds are powers of a base that depends on its scale, and may
// change between points: these include the powers of two, whatever the scale, except in histograms with very few buckets.
func (r *otlpReader) exponential(name string, p *otlpPoint, labels map[string]string, delta bool) {
	counts := slices.Concat(p.Positive.Counts, p.Positive.SnakeCounts)
	const least, most = -14, 14 // powers of two: 60 µs to 4.6 h
	below, k := cmp.Or(p.Zero, p.SnakeZero), 0
	for power := least; power <= most; power++ {
		end := math.Ldexp(float64(power), p.Scale) - float64(p.Positive.Offset) // of the buckets that end at that power or below
		for k < len(counts) && float64(k+1) <= end {
			below += counts[k]
			k++
		}
		r.bucket(name, p, labels, strconv.FormatFloat(math.Ldexp(1, power), 'g', -1, 64), below, delta)
	}
	r.whole(name, p, labels, delta)
}

// bucket adds the number of values up to a bound.
func (r *otlpReader) bucket(name string, p *otlpPoint, labels map[string]string, bound string, n otlpNumber, delta bool) {
	labels["le"] = bound
	r.put(name+"_bucket", "histogram", labels, p, float64(n), delta)
	delete(labels, "le")
}

// whole adds the count and the sum.
func (r *otlpReader) whole(name string, p *otlpPoint, labels map[string]string, delta bool) {
	r.bucket(name, p, labels, "+Inf", p.Count, delta)
	r.put(name+"_count", "", labels, p, float64(p.Count), delta)
	if p.Sum != nil {
		r.put(name+"_sum", "", labels, p, float64(*p.Sum), delta)
	}
}

func (r *otlpReader) summary(name string, p *otlpPoint, labels map[string]string) {
	for _, q := range slices.Concat(p.Quantiles, p.SnakeQuantes) {
		labels["quantile"] = strconv.FormatFloat(float64(q.Quantile), 'g', -1, 64)
		r.put(name, "gauge", labels, p, float64(q.Value), false)
	}
	delete(labels, "quantile")
	r.put(name+"_count", "", labels, p, float64(p.Count), false)
	if p.Sum != nil {
		r.put(name+"_sum", "", labels, p, float64(*p.Sum), false)
	}
}

// unitNames are the suffixes that Prometheus adds to OpenTelemetry names.
var unitNames = map[string]string{"s": "_seconds", "ms": "_milliseconds", "us": "_microseconds", "ns": "_nanoseconds", "By": "_bytes", "1": "_ratio"}

// prometheusName returns Prometheus's name of a metric. A name exported by a server has no dots, and stays.
func prometheusName(name, unit string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	name = plainName(name)
	if behind := unitNames[unit]; !strings.HasSuffix(name, behind) {
		name += behind
	}
	return name
}

// plainName returns an OpenTelemetry name as Prometheus writes it.
func plainName(name string) string {
	return strings.NewReplacer(".", "_", "-", "_", "/", "_").Replace(name)
}
