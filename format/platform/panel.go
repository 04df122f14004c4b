package platform

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A dashboard exports a table of a panel, with the newest line first or last: a column for each series, or one for the
// values and others that distinguish series. Values may have the panel's format, "94.2%" or "1.25 K".

// timeNames are names of the time column, in lower case.
var timeNames = []string{"time", "timestamp", "date", "datetime", "ts"}

// named matches a column that names a series: `sglang:token_usage{instance="a"}`, or `{__name__="sglang:token_usage",
// instance="a"}`.
var named = lazyregexp.New(`^(?:[a-zA-Z_][a-zA-Z0-9_:]*)?\{.*\}$|^(?:sglang|vllm):[a-z_]+$`)

// A panelHead describes the columns of a panel.
type panelHead struct {
	columns     []string
	time, value int // value is -1 if every column except the time is a series
}

// panelOf parses the header; ok is false if there is no time column.
func panelOf(columns []string) (h panelHead, ok bool) {
	h = panelHead{columns: columns, time: -1, value: -1}
	for i, name := range columns {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\xef\xbb\xbf")))
		switch {
		case h.time < 0 && slices.Contains(timeNames, name):
			h.time = i
		case name == "value" || strings.HasPrefix(name, "value #"):
			h.value = i
		}
	}
	return h, h.time >= 0 && len(columns) > 1
}

// barePanel skips the line that Grafana writes for Excel.
func barePanel(r *bufio.Reader) {
	if head, _ := r.Peek(3); string(head) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	if head, _ := r.Peek(5); strings.HasPrefix(string(head), "sep=") {
		_, _ = r.ReadString('\n')
	}
}

// isPanel reports whether a file is a panel as CSV: its columns have the names of series, or its first row has a time and a
// value.
func isPanel(head []byte) bool {
	r := bufio.NewReader(bytes.NewReader(head))
	barePanel(r)
	c := csv.NewReader(r)
	c.FieldsPerRecord = -1
	columns, err := c.Read()
	if err != nil || isSMI(head) {
		return false
	}
	h, ok := panelOf(columns)
	if !ok {
		return false
	}
	row, err := c.Read()
	if err != nil || len(row) <= h.time {
		return h.value < 0 && slices.ContainsFunc(columns, named.MatchString)
	}
	_, _, dated := stampOf(row[h.time])
	return dated && slices.ContainsFunc(row, func(text string) bool { _, _, ok := amountOf(text); return ok })
}

// A title matches the titles and legends of panels for a metric, in the dashboards of SGLang, vLLM, and others.
type title struct {
	says *lazyregexp.Regexp
	name string // of the metric
}

// usageTitle is the only metric with titles whose values are shares.
const usageTitle = "sglang:token_usage"

var panelTitles = []title{
	{lazyregexp.New(`(?i)num(?:ber)?[ _](?:of )?running|running[ _]re?q`), "sglang:num_running_reqs"},
	{lazyregexp.New(`(?i)waiting|queued|queue[ _](?:length|re?q)`), "sglang:num_queue_reqs"},
	{lazyregexp.New(`(?i)token usage|(?:kv|gpu)[ _-]?cache (?:usage|utili[sz]ation)|cache utili[sz]ation`), usageTitle},
	{lazyregexp.New(`(?i)generation throughput|gen[ _]throughput`), "sglang:gen_throughput"},
}

// legend returns the metric of a column, from its legend, or else from the title of the panel, which is in Grafana's file
// name, "Running requests-data-2026-08-17 20_53_20.csv". If the legend names no metric, it is the name of the server.
func legend(file, column string) (metric, server string, ok bool) {
	panel, _, _ := strings.Cut(bareName(file), "-data")
	for i, text := range [...]string{column, panel} {
		for _, t := range panelTitles {
			if t.says.MatchString(text) {
				if i == 0 {
					return t.name, "", true
				}
				return t.name, column, true
			}
		}
	}
	return "", "", false
}

// A panelSeries is a series of a panel.
type panelSeries struct {
	column string            // or its legend
	labels map[string]string // of columns that distinguish series
	unit   string
	list   []point
}

// readPanel reads a panel. Times are in the browser's zone, unless they have one.
func (d *reader) readPanel(r io.Reader) error {
	b := bufio.NewReader(r)
	barePanel(b)
	c := csv.NewReader(b)
	c.FieldsPerRecord, c.LazyQuotes = -1, true
	columns, err := c.Read()
	if err != nil {
		return err
	}
	h, _ := panelOf(columns)
	of := map[string]*panelSeries{}
	var all []*panelSeries
	add := func(key string, at trace.Time, text string, begin func() *panelSeries) {
		v, unit, ok := amountOf(text)
		if !ok {
			return
		}
		s := of[key]
		if s == nil {
			s = begin()
			of[key], all = s, append(all, s)
		}
		s.unit, s.list = unit, append(s.list, point{at, v})
	}
	for {
		row, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(row) <= max(h.time, h.value) {
			continue
		}
		at, ok := d.panelTime(row[h.time])
		switch {
		case !ok:
		case h.value >= 0:
			labels, text := h.labels(row), row[h.value]
			row[h.time], row[h.value] = "", ""
			add(strings.Join(row, "\x00"), at, text, func() *panelSeries { return &panelSeries{column: labels["Metric"], labels: labels} })
		default:
			for i := range min(len(row), len(columns)) {
				if i != h.time {
					add(columns[i], at, row[i], func() *panelSeries { return &panelSeries{column: columns[i]} })
				}
			}
		}
	}
	d.panels(all)
	return nil
}

// panels adds series of a panel, or of a query whose result has no names. It reports unknown series, which it only keeps if
// the query asked for nothing else.
func (d *reader) panels(list []*panelSeries) {
	beside, unknown := slices.ContainsFunc(list, func(s *panelSeries) bool { // functions remove the name and keep the labels
		_, ok := parseSample(s.column + " 0")
		return ok && named.MatchString(s.column)
	}), ""
	for _, s := range list {
		if d.panelPoints(s) {
			continue
		}
		if unknown = cmp.Or(unknown, s.called()); !beside {
			d.shown(s)
		}
	}
	if unknown != "" {
		d.diags.Add(trace.MetricsLegend.Of(d.name, unknown))
	}
}

// labels returns the columns of a row that are neither its time nor its value.
func (h *panelHead) labels(row []string) map[string]string {
	labels := map[string]string{}
	for i := range min(len(row), len(h.columns)) {
		if i != h.time && i != h.value && row[i] != "" {
			labels[h.columns[i]] = row[i]
		}
	}
	return labels
}

// called returns the panel's name of a series.
func (s *panelSeries) called() string {
	if s.column != "" {
		return s.column
	}
	parts := order.Each(slices.Sorted(maps.Keys(s.labels)), func(k string) string { return k + "=" + s.labels[k] })
	return strings.Join(parts, ",")
}

// panelPoints adds a series of a panel, and reports whether its metric is known.
func (d *reader) panelPoints(s *panelSeries) (known bool) {
	if named.MatchString(s.column) {
		if x, ok := parseSample(s.column + " 0"); ok {
			labels := map[string]string{"__name__": x.name}
			maps.Copy(labels, x.labels)
			d.points(labels, s.list)
			return true
		}
	}
	if s.labels["__name__"] != "" {
		d.points(s.labels, s.list)
		return true
	}
	metric, server, ok := legend(d.name, s.column)
	if !ok {
		return false
	}
	labels := map[string]string{"__name__": metric}
	for k, v := range s.labels {
		if k != "Metric" {
			labels[k] = v
		}
	}
	if server != "" {
		labels["instance"] = server
	}
	if metric == usageTitle && (s.unit == "%" || slices.ContainsFunc(s.list, func(p point) bool { return p.value > 1.5 })) {
		for k := range s.list {
			s.list[k].value /= 100
		}
	}
	d.points(labels, s.list)
	return true
}

// shown adds a series whose only name is that of its panel, which is in the file name.
func (d *reader) shown(s *panelSeries) {
	panel, _, _ := strings.Cut(bareName(d.name), "-data")
	id := d.SeriesOf(series.Series{Metric: d.Metric(series.Metric{Name: panel, Unit: s.unit, Kind: series.Shown, Doc: "as its panel calls it"}),
		Place: d.Place(series.Place{Server: d.Server(series.Server{}), Rank: trace.NoRank, GPU: series.NoGPU}), Label: d.Set.Syms.Intern(s.called())})
	for _, p := range s.list {
		d.Add(id, p.at, p.value)
	}
}

// amounts are the prefixes and units in Grafana's values, with their factors.
var amounts = map[string]struct {
	times float64
	unit  string
}{
	"K": {1e3, ""}, "k": {1e3, ""}, "Mil": {1e6, ""}, "M": {1e6, ""}, "Bil": {1e9, ""}, "G": {1e9, ""}, "%": {1, "%"},
	"ns": {1e-9, "s"}, "µs": {1e-6, "s"}, "us": {1e-6, "s"}, "ms": {1e-3, "s"}, "s": {1, "s"}, "min": {60, "s"}, "mins": {60, "s"}, "hour": {3600, "s"}, "hours": {3600, "s"},
	"kB": {1e3, "B"}, "MB": {1e6, "B"}, "GB": {1e9, "B"}, "TB": {1e12, "B"}, "KiB": {1 << 10, "B"}, "MiB": {1 << 20, "B"}, "GiB": {1 << 30, "B"}, "TiB": {1 << 40, "B"},
}

// amountOf parses a value as shown in a panel: "94.2%", "1.25 K req/s", "230 ms".
func amountOf(text string) (v float64, unit string, ok bool) {
	text = strings.TrimSpace(text)
	end := len(text)
	if i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789.,+-eEINaTf", r) }); i >= 0 {
		end = i
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text[:end], ",", ""), 64)
	if err != nil {
		return 0, "", false
	}
	prefix, rest, _ := strings.Cut(strings.TrimSpace(text[end:]), " ")
	if a, ok := amounts[prefix]; ok {
		return v * a.times, cmp.Or(a.unit, rest), true
	}
	return v, prefix, true
}

// panelTime reads a time of a panel.
func (d *reader) panelTime(text string) (trace.Time, bool) {
	at, local, ok := stampOf(text)
	d.Source().Zone.Local = d.Source().Zone.Local || local
	return at, ok
}
