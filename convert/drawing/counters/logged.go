package counters

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Chosen says which logs and metrics are drawn.
type Chosen struct {
	// Window is the time for which they are drawn, on the common clock; 0 is no bound.
	Window inputs.Extent
	// Hosts and Want choose whose logs and metrics are drawn; nil is everybody's.
	Hosts []string
	Want  []naming.Want
}

// loggedView is the group of logs and metrics over time, as recorded: below each server or host, its ranks,
// GPUs, and events.
type loggedView struct {
	b      *trace.Builder
	set    *series.Set
	names  *naming.Names
	clocks *clocks.Alignment
	opt    *Chosen
	rows   int32 // number of headings so far
	// histograms are, for each place, the histograms that reports know.
	histograms [][]series.Histogram
}

// Draw adds the group of the chosen logs and metrics; order is its position among other groups.
func Draw(b *trace.Builder, set *series.Set, aligned *clocks.Alignment, opt *Chosen, order int32) {
	if set.Empty() {
		return
	}
	v := &loggedView{b: b, set: set, names: set.Names(), clocks: aligned, opt: opt}
	v.histograms = make([][]series.Histogram, len(set.Places))
	for _, h := range set.Histograms() {
		if h.Metric < series.KnownMetrics && v.wanted(h.Place) {
			v.histograms[h.Place] = append(v.histograms[h.Place], h)
		}
	}
	lists, instants := make([][]int, len(set.Places)), make([][]int, len(set.Servers))
	for i := range set.List {
		if x := &set.List[i]; set.N(i) > 0 && set.Metric(x.Metric).Kind != series.Bucket && v.wanted(x.Place) {
			lists[x.Place] = append(lists[x.Place], i)
		}
	}
	for i := range set.Instants {
		if x := &set.Instants[i]; x.Time != 0 && v.inside(v.on(x.Place)(x.Time)) && v.wanted(x.Place) {
			server := set.Places[x.Place].Server
			instants[server] = append(instants[server], i)
		}
	}
	top := trace.TrackID(0)
	for _, server := range v.servers() {
		places := v.placesOf(server, lists)
		if len(places)+len(instants[server]) == 0 {
			continue
		}
		if top == 0 {
			top = b.Track(trace.Track{Name: b.Intern(profile.Logged), Order: order, Rank: trace.NoRank,
				Desc: b.Intern("what servers, hosts and GPUs say of themselves in logs and metrics; stamps of logs are often of whole seconds")})
		}
		x := &set.Servers[server]
		name := cmp.Or(x.Called(), "unknown server")
		parent := v.group(top, name, strings.TrimSpace(x.Engine+" "+x.Role))
		if list := instants[server]; len(list) > 0 {
			v.drawInstants(parent, naming.Separator+name, list)
		}
		for _, p := range places {
			of, under := cmp.Or(set.NameOf(p, v.names), name), parent
			if len(places) > 1 && of != name {
				under = v.group(parent, of, "")
			}
			v.drawPlace(under, p, of, lists[p])
		}
	}
}

// group adds a heading.
func (v *loggedView) group(parent trace.TrackID, name, desc string) trace.TrackID {
	v.rows++
	t := trace.Track{Parent: parent, Name: v.b.Intern(name), Order: v.rows, Rank: trace.NoRank}
	if desc != "" {
		t.Desc = v.b.Intern(desc)
	}
	return v.b.Track(t)
}

// servers returns the indexes of all servers, in display order.
func (v *loggedView) servers() []int32 {
	return order.Sorted(len(v.set.Servers), func(a, b int32) int {
		x, y := &v.set.Servers[a], &v.set.Servers[b]
		return cmp.Or(strings.Compare(x.Called(), y.Called()), strings.Compare(x.Host, y.Host))
	})
}

// placesOf returns the places of a server with anything to draw, in order: the server itself, then its
// ranks and GPUs.
func (v *loggedView) placesOf(server int32, lists [][]int) (list []int32) {
	for i := range v.set.Places {
		if p := &v.set.Places[i]; p.Server == server && len(lists[i])+len(v.histograms[i]) > 0 {
			list = append(list, int32(i))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int {
		p, q := &v.set.Places[a], &v.set.Places[b]
		return cmp.Or(p.Rank.Compare(q.Rank), cmp.Compare(p.GPU, q.GPU), strings.Compare(p.UUID, q.UUID))
	})
	return list
}

// wanted reports whether a place is chosen.
func (v *loggedView) wanted(place int32) bool {
	server, at := &v.set.Servers[v.set.Places[place].Server], v.set.At(place)
	isHost := func(text string) bool {
		return strings.HasPrefix(server.Host, text) || strings.HasPrefix(server.Name, text)
	}
	isRank := func(w naming.Want) bool { return v.names.Is(at, w) }
	return (v.opt.Hosts == nil || slices.ContainsFunc(v.opt.Hosts, isHost)) && (v.opt.Want == nil || slices.ContainsFunc(v.opt.Want, isRank))
}

// on returns the mapping from a place's times to the common clock.
func (v *loggedView) on(place int32) func(trace.Time) trace.Time {
	return v.clocks.OfHost(v.set.Servers[v.set.Places[place].Server].Host)
}

func (v *loggedView) inside(t trace.Time) bool {
	return t >= v.opt.Window.From && (v.opt.Window.To == 0 || t <= v.opt.Window.To)
}

// drawPlace adds the rows of a place: metrics that reports know, then those that only their producer knows.
func (v *loggedView) drawPlace(parent trace.TrackID, place int32, name string, list []int) {
	of := naming.Separator + name
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(v.set.List[a].Metric, v.set.List[b].Metric) })
	rest, order := trace.TrackID(0), int32(1)
	for k, i := range list {
		s := &v.set.List[i]
		under := parent
		if s.Metric >= series.KnownMetrics {
			if rest == 0 {
				rest = v.b.Track(trace.Track{Parent: parent, Name: v.b.Intern("more" + naming.Separator + strconv.Itoa(len(list)-k)), Order: math.MaxInt32, Rank: trace.NoRank,
					Desc: v.b.Intern("metrics as their producer names them")})
			}
			under = rest
		}
		v.drawSeries(under, order, v.set.Labeled(v.set.Metric(s.Metric).Name, s.Label)+of, v.shape(i, v.on(place)))
		order++
	}
	for i := range v.histograms[place] {
		h := &v.histograms[place][i]
		name := v.set.Labeled(v.set.HistogramName(h.Metric), h.Label)
		above, most := v.percentile(h, 99)
		v.drawSeries(parent, order, name+" p99 is above"+of, above)
		v.drawSeries(parent, order+1, name+" p99 is at most"+of, most)
		order += 2
	}
}

// percentile returns counters of the lower and upper bound of a percentile of a histogram, for each
// interval between scrapes. Above the last bucket, the upper bound is unknown and shown as 0.
func (v *loggedView) percentile(h *series.Histogram, p float64) (above, most shape) {
	const what = "a bound of the buckets between which it lies, from a scrape to the next; 0 where nothing was counted"
	above, most = shape{unit: "s", what: what}, shape{unit: "s", what: what + ", or it is above all bounds"}
	on := v.on(h.Place)
	v.set.Grown(h, func(from, to trace.Time, counts []float64) {
		if from == 0 {
			return
		}
		a, b := series.Between(h.Bounds, counts, p)
		if math.IsNaN(a) {
			a, b = 0, 0
		}
		if math.IsInf(b, 1) {
			b = 0
		}
		above.points = append(above.points, series.Sample{Time: on(from), Value: a})
		most.points = append(most.points, series.Sample{Time: on(from), Value: b})
	})
	return above, most
}

// drawInstants adds the row of events on a server.
func (v *loggedView) drawInstants(parent trace.TrackID, of string, list []int) {
	track := v.b.Track(trace.Track{Parent: parent, Kind: trace.KindThread, Name: v.b.Intern("events" + of), Rank: trace.NoRank, Desc: v.b.Intern("what logs and metrics say that happened")})
	what, where, line, count, stack := v.b.Intern("what"), v.b.Intern("where"), v.b.Intern("line"), v.b.Intern("count"), v.b.Intern("stack")
	for _, i := range list {
		x := &v.set.Instants[i]
		args := trace.ArgList(nil).String(what, v.set.Syms.Name(x.Text)).String(where, v.set.NameOf(x.Place, v.names)).String(line, v.set.Pos(x).String())
		if x.Count > 1 {
			args = args.Int(count, int64(x.Count))
		}
		if x.Stack != 0 {
			args = args.String(stack, v.set.Syms.Name(x.Stack))
		}
		v.b.Instant(trace.Instant{Time: v.on(x.Place)(x.Time), Track: track, Name: v.b.Intern(x.Kind.String()), Args: v.b.Args().Put(args)})
	}
}

// A shape is a series as a counter, which holds each value until the next one.
type shape struct {
	unit, what string // what describes the counter, and how its values were computed
	points     []series.Sample
}

// shape returns the counter of a series. The value of a mean, and the rate of a counter, hold for the time
// before their sample.
func (v *loggedView) shape(i int, on func(trace.Time) trace.Time) (s shape) {
	metric := v.set.Metric(v.set.List[i].Metric)
	s.unit, s.what = metric.Unit, metric.Doc
	var points []series.Sample
	for x := range v.set.Each(i) {
		x.Time = on(x.Time)
		points = append(points, x)
	}
	switch {
	case metric.Kind == series.Counter:
		s.points = rates(points)
		s.what += "; a second, between samples"
		s.unit = perSecond(metric.Unit)
	case metric.Kind == series.Mean:
		s.points = before(points)
		s.what += "; of the time from a sample to the next"
	case metric.Kind == series.Amount && metric.Unit != "ns":
		s.unit = perSecond(metric.Unit)
		var width string
		s.points, width = sums(points)
		s.what += "; a second, in each " + width
	default:
		s.points = points
	}
	if metric.Unit == "ns" {
		for i := range s.points {
			s.points[i].Value /= 1e6
		}
		s.unit = "ms"
	}
	return s
}

func perSecond(unit string) string { return unit + "/s" }

// before moves each value to the previous sample, where its interval begins. The first value is dropped:
// its interval has no known beginning.
func before(points []series.Sample) []series.Sample {
	if len(points) < 2 {
		return points
	}
	for i := range points[1:] {
		points[i].Value = points[i+1].Value
	}
	return points[:len(points)-1]
}

// rates returns how much a counter grows per second, from each sample to the next.
func rates(points []series.Sample) []series.Sample {
	out := make([]series.Sample, 0, len(points))
	for i := range max(1, len(points)) - 1 {
		a, b := points[i], points[i+1]
		if b.Time > a.Time {
			a.Value = series.Growth(a.Value, b.Value) / (float64(b.Time-a.Time) / 1e9)
			out = append(out, a)
		}
	}
	return out
}

// sums returns the rates of amounts, in pieces of time of a round length.
func sums(points []series.Sample) (out []series.Sample, width string) {
	if len(points) == 0 {
		return nil, ""
	}
	pieces := NewPieces(inputs.Extent{From: points[0].Time, To: points[len(points)-1].Time}, RatePieces(len(points)), 0)
	pieces.Width = max(pieces.Width, trace.Time(1e9)) // log stamps have a resolution of seconds
	for _, p := range points {
		pieces.Values[pieces.At(p.Time)] += p.Value
	}
	for i := range pieces.At(pieces.Extent.To) + 1 {
		out = append(out, series.Sample{Time: pieces.Extent.From + trace.Time(i)*pieces.Width, Value: pieces.Values[i] / (float64(pieces.Width) / 1e9)})
	}
	return append(out, series.Sample{Time: pieces.Extent.From + trace.Time(len(out))*pieces.Width}), pieces.Text()
}

// drawSeries adds the row of a series, limited to the window.
func (v *loggedView) drawSeries(parent trace.TrackID, order int32, name string, as shape) {
	points := v.within(as.points)
	if len(points) == 0 {
		return
	}
	t := trace.Track{Parent: parent, Kind: trace.KindCounter, Name: v.b.Intern(name), Order: order, Rank: trace.NoRank, Desc: v.b.Intern(as.what)}
	if as.unit != "" {
		t.Unit = v.b.Intern(as.unit)
	}
	track := v.b.Track(t)
	last := math.NaN()
	for i, p := range points {
		// Of several values at the same time, the last one holds.
		if later := i+1 < len(points) && points[i+1].Time == p.Time; !later && p.Value != last {
			v.b.Sample(trace.Sample{Time: p.Time, Value: p.Value, Track: track})
			last = p.Value
		}
	}
}

// within returns the points in the window, preceded by the value that held when the window began.
func (v *loggedView) within(points []series.Sample) []series.Sample {
	from, _ := slices.BinarySearchFunc(points, v.opt.Window.From, func(p series.Sample, t trace.Time) int { return cmp.Compare(p.Time, t) })
	to := len(points)
	if v.opt.Window.To != 0 {
		to, _ = slices.BinarySearchFunc(points, v.opt.Window.To+1, func(p series.Sample, t trace.Time) int { return cmp.Compare(p.Time, t) })
	}
	if v.opt.Window.From > 0 && from > 0 && (from == len(points) || points[from].Time > v.opt.Window.From) {
		from--
		points[from].Time = v.opt.Window.From
	}
	return points[from:max(from, to)]
}
