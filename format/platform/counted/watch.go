package counted

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Watcher watches series with a meaning beyond their values, of one input.
type Watcher struct {
	fill    *series.Filler
	watched map[int32]*watched
	order   []*watched
}

// New returns a watcher that adds what it finds to an input.
func New(f *series.Filler) *Watcher { return &Watcher{fill: f, watched: map[int32]*watched{}} }

// A watched is a series with a meaning beyond its values.
type watched struct {
	name  string        // of the counter
	label string        // which says how requests ended
	by    series.Server // the responder, or who gets no requests
	group string        // and the responder: of counters of the same requests
	part  part
	is    class
	adds  bool // to the number of all requests

	row         int // in mishaps, gauges, or devices
	gauge       bool
	device      bool
	gpu         string
	place       int32 // of the series
	out         bool  // the server gets no requests
	first, last point
	grew        []point
	total       float64 // of grew
}

type point struct {
	at    trace.Time
	value float64
}

// Watch watches a series if it has such a meaning. by is the server that was scraped.
func (w *Watcher) Watch(id int32, name string, labels map[string]string, by series.Server) {
	plain := bare(name)
	has := func(with string) bool {
		key, value, _ := strings.Cut(with, "=")
		return with == "" || labels[key] == value
	}
	named := func(who []string, of series.Server) series.Server {
		for _, key := range who {
			if labels[key] != "" {
				of.Name = address(labels[key])
				break
			}
		}
		return of
	}
	x := &watched{name: name, row: -1}
	for i := range gauges {
		if g := &gauges[i]; g.name == plain && has(g.with) {
			if x.by = named(g.who, series.Server{}); x.by.Name != "" {
				x.row, x.gauge = i, true
			}
		}
	}
	for i := range mishaps {
		if m := &mishaps[i]; m.name == plain && has(m.with) {
			x.by, x.row = named(m.who, by), i
		}
	}
	for i := range devices {
		if devices[i].name == plain {
			x.row, x.device, x.gpu, x.place = i, true, cmp.Or(labels["gpu"], labels["gpu_id"]), w.fill.Set.List[id].Place
		}
	}
	if x.row < 0 {
		i := slices.IndexFunc(counters, func(c counter) bool {
			return c.name == plain && (c.part != each || c.labels == nil || slices.ContainsFunc(c.labels, func(key string) bool { return labels[key] != "" }))
		})
		if i < 0 || labels["reporter"] == "destination" { // requests that did not reach the destination are only known to the source
			return
		}
		c := &counters[i]
		x.by, x.part = named(c.who, by), c.part
		for _, key := range slices.Backward(c.labels) {
			x.label = cmp.Or(labels[key], x.label)
		}
		as := x.part
		if labels["status"] == "error" { // beside Dynamo's types of errors
			as = bad
		}
		if as == bad || as == each && c.labels != nil {
			x.is = classOf(x.label, as)
		}
		x.group = cmp.Or(c.group, c.name) + "\x00" + x.by.Host + "\x00" + x.by.Name
		x.adds = x.part != bad || apart[c.group]
	}
	w.watched[id] = x
	w.order = append(w.order, x)
}

// Saw handles a value of a series; values come in order of time.
func (w *Watcher) Saw(id int32, at trace.Time, value float64) {
	x := w.watched[id]
	if x == nil {
		return
	}
	if x.gauge {
		w.sawGauge(x, at, value)
		return
	}
	if x.first.at == 0 {
		x.first = point{at, value}
	} else if more := series.Growth(x.last.value, value); more > 0 {
		x.grew, x.total = append(x.grew, point{at, more}), x.total+more
	}
	x.last = point{at, value}
}

// sawGauge handles a value of a gauge that says whether a server gets requests.
func (w *Watcher) sawGauge(x *watched, at trace.Time, value float64) {
	g := &gauges[x.row]
	switch out := value == g.out; {
	case out && !x.out:
		w.fill.Instant(series.Instant{Time: at, Kind: series.Unrouted, Place: w.addressed(x.by.Name)}, series.OutOfRouter+g.says)
		x.out = true
	case value == g.in && x.out: // and not half open
		w.fill.Instant(series.Instant{Time: at, Kind: series.Routed, Place: w.addressed(x.by.Name)}, g.back)
		x.out = false
	}
}

// address returns the address in a URL; other names stay.
func address(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url, _, _ = strings.Cut(rest, "/")
	}
	return strings.TrimRight(url, "/")
}

// addressed returns the place of a server at an address, or with a name.
func (w *Watcher) addressed(at string) int32 {
	host, _, ok := strings.Cut(at, ":")
	by := series.Server{Name: at}
	if ok {
		by.Host = host
	}
	server := w.fill.Server(by)
	if ok {
		w.fill.Listens(server, at)
	}
	return w.fill.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: series.NoGPU})
}

// soon is the most time between samples of one scrape.
const soon = trace.Time(60e9)

// Told adds the requests that failed or were refused, unless they are very few: some are normal. With a single scrape, they are those
// since its process began.
func (w *Watcher) Told() {
	groups := map[string][]*watched{}
	for _, x := range w.order {
		switch {
		case x.gauge || x.first.at == 0:
		case x.device:
			w.device(x)
		case x.row >= 0:
			w.mishap(x)
		default:
			groups[x.group] = append(groups[x.group], x)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		w.tell(groups[key])
	}
}

// tell adds what the counters of the same requests say.
func (w *Watcher) tell(list []*watched) {
	const oneIn = 1000
	first, last := list[0].first.at, list[0].last.at
	for _, x := range list {
		first, last = min(first, x.first.at), max(last, x.last.at)
	}
	once, since := last == first, ""
	var all float64
	var ends [refused + 1][]point
	var sums [refused + 1]float64
	labels, by := [refused + 1]map[string]float64{}, [refused + 1]*watched{}
	for _, x := range list {
		if once {
			x.grew, x.total, since = []point{x.first}, x.first.value, series.SinceBegun
		} else if x.first.at > first+soon { // it began at 0 when there was one to count
			x.grew, x.total = append([]point{x.first}, x.grew...), x.total+x.first.value
		}
		if x.adds {
			all += x.total
		}
		if x.is == fine || x.total == 0 {
			continue
		}
		if labels[x.is] == nil {
			labels[x.is] = map[string]float64{}
		}
		if sums[x.is] += x.total; by[x.is] == nil || x.total > by[x.is].total {
			by[x.is] = x
		}
		labels[x.is][x.label] += x.total
		ends[x.is] = append(ends[x.is], x.grew...)
	}
	if bad := sums[failed] + sums[refused]; bad < 2 || bad*oneIn < all {
		return
	}
	place := w.fill.Place(series.Place{Server: w.fill.Server(list[0].by), Rank: trace.NoRank, GPU: series.NoGPU})
	for is, metric := range [...]series.MetricID{failed: series.ServerErrors, refused: series.Refused} {
		if ends[is] == nil {
			continue
		}
		id := w.fill.SeriesOf(series.Series{Metric: metric, Place: place, Label: w.fill.Set.Syms.Intern(by[is].name + most(labels[is]) + since)})
		slices.SortStableFunc(ends[is], func(a, b point) int { return cmp.Compare(a.at, b.at) })
		for _, p := range ends[is] {
			w.fill.Add(id, p.at, p.value)
		}
	}
	if all > 0 {
		w.fill.Add(w.fill.SeriesOf(series.Series{Metric: series.Answers, Place: place, Label: w.fill.Set.Syms.Intern(list[0].group[:strings.IndexByte(list[0].group, 0)] + since)}), last, all)
	}
}

// most says which labels most requests have: " (504: 37, 503: 2)".
func most(n map[string]float64) string {
	const few = 3
	delete(n, "")
	keys := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), strings.Compare(a, b)) })
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%s: %.0f", key, n[key])
	}
	if len(keys) == 0 {
		return ""
	}
	return " (" + strings.Join(keys[:min(few, len(keys))], ", ") + ")"
}

// mishap adds the event of a counter of mishaps that grew, or of one with a single sample.
func (w *Watcher) mishap(x *watched) {
	m := &mishaps[x.row]
	n, at, verb, since := x.total, x.first.at, "counts", ""
	if x.last.at == x.first.at {
		n, verb, since = x.first.value, "has counted", series.SinceBegun
	} else if len(x.grew) > 0 {
		at = x.grew[0].at
	}
	if n < 1 || m.once && since == "" {
		return
	}
	what := m.many
	if n == 1 {
		what = m.one
	}
	place := w.fill.Place(series.Place{Server: w.fill.Server(x.by), Rank: trace.NoRank, GPU: series.NoGPU})
	w.fill.Instant(series.Instant{Time: at, Kind: series.Complaint, Place: place}, fmt.Sprintf("%s %.0f %s%s (%s)", verb, n, what, since, x.name))
}

// device adds the event of a GPU's counter or gauge that is not 0.
func (w *Watcher) device(x *watched) {
	n, at := x.last.value, x.first.at
	if n < 1 {
		return
	}
	if len(x.grew) > 0 {
		at = x.grew[0].at
	}
	many := fmt.Sprintf("%.0f uncorrectable errors", n)
	if n == 1 {
		many = "1 uncorrectable error"
	}
	says := strings.NewReplacer("{gpu}", x.gpu, "{n}", many).Replace(devices[x.row].says)
	w.fill.Instant(series.Instant{Time: at, Kind: series.Hardware, Place: x.place}, says)
}
