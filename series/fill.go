package series

import (
	"cmp"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Filler puts what one input says into a set. Inputs are read one after another.
type Filler struct {
	Set    *Set
	source uint32
	within uint32
	grain  uint32 // of within: how often 100 ns has to be taken ten times
	line   uint32
	at     trace.Time // of the last sample, with the unit of its time
	unit   uint8
}

// Fill begins an input.
func (s *Set) Fill(name, encoding string) *Filler {
	s.Sources = append(s.Sources, Source{Name: name, Encoding: encoding, part: span{instant: len(s.Instants)}})
	return &Filler{Set: s, source: uint32(len(s.Sources) - 1)}
}

// Source returns the description of the input, until another one begins.
func (f *Filler) Source() *Source { return &f.Set.Sources[f.source] }

// Within says how exact stamps are from now on, in ns: what follows happened at its stamp, or
// up to so much later.
func (f *Filler) Within(ns int64) {
	f.within, f.grain = uint32(min(ns/1000, math.MaxUint32)), 0
	for most := int64(100); most < ns; most *= 10 {
		f.grain++
	}
}

// Line says of which line what follows is.
func (f *Filler) Line(n int64) { f.line = uint32(n) & (1<<lineBits - 1) }

// Server returns the index of a server, which is added if it is new: they are told apart by host
// and name.
func (f *Filler) Server(x Server) int32 {
	key := Server{Host: x.Host, Name: x.Name}
	i := order.At(f.Set.serverOf, &f.Set.Servers, key, func() Server { return key })
	f.SetServer(i, x.Role, x.Engine)
	return i
}

// SetServer says what a server does and which engine it runs, once that is known; "" is not
// known. Another input may say so of it, too.
func (f *Filler) SetServer(server int32, role, engine string) {
	x := &f.Set.Servers[server]
	if x.Role == "" || x.Role == "unified" && role != "" {
		x.Role = role
	}
	x.Engine = cmp.Or(x.Engine, engine)
}

// Listens says where a server listens, once that is known: routers call it so.
func (f *Filler) Listens(server int32, address string) {
	x := &f.Set.Servers[server]
	x.Address = cmp.Or(x.Address, address)
}

// about notes that an input says something about a place.
func (s *Source) about(place int32) {
	for int(place)/64 >= len(s.places) {
		s.places = append(s.places, 0)
	}
	s.places[place/64] |= 1 << (place % 64)
}

// Place returns the index of a place, which is added if it is new.
func (f *Filler) Place(x Place) int32 {
	i := indexOf(f.Set.placeOf, &f.Set.Places, x)
	f.Source().about(i)
	return i
}

// Series returns the index of the series of a metric at a place, which is added if it is new.
func (f *Filler) Series(metric MetricID, place int32) int32 {
	return f.SeriesOf(Series{Metric: metric, Place: place})
}

// SeriesOf is Series for one that has a label, or is a bucket of a histogram.
func (f *Filler) SeriesOf(x Series) int32 {
	return indexOf(f.Set.seriesOf, &f.Set.List, x)
}

// Metric returns the metric of a name that only its producer knows, which is added if it is new.
func (f *Filler) Metric(m Metric) MetricID {
	id, ok := f.Set.metricOf[m.Name]
	if !ok {
		id = KnownMetrics + MetricID(len(f.Set.named))
		f.Set.named = append(f.Set.named, m)
		f.Set.metricOf[m.Name] = id
	}
	return id
}

func indexOf[T comparable](of map[T]int32, list *[]T, x T) int32 {
	return order.At(of, list, x, func() T { return x })
}

// Add adds a sample. A value that is no number is left out: nothing was measured.
func (f *Filler) Add(series int32, at trace.Time, value float64) {
	if math.IsNaN(value) {
		return
	}
	if at != f.at {
		f.Saw(at)
		f.at, f.unit = at, unitOf(at)
	}
	for int(series) >= len(f.Set.columns) {
		f.Set.columns = append(f.Set.columns, column{})
	}
	f.Set.columns[series].add(Sample{Time: at, Value: value, mark: f.grain<<lineBits | f.line}, f.source, f.unit)
	f.Source().Samples++
}

// Instant adds something that happened, with its text: one line without prompts or keys.
func (f *Filler) Instant(x Instant, text string) {
	f.Saw(x.Time)
	x.Source, x.Within, x.Count, x.Text = f.source, f.within, max(1, x.Count), f.Set.Syms.Intern(text)
	f.Set.Instants = append(f.Set.Instants, x)
	f.Source().part.instants++
}

// Explain adds to the text of the last instant what a later line says of it, if its text has a word.
func (f *Filler) Explain(word, more string) (ok bool) {
	if f.Source().part.instants == 0 {
		return false
	}
	x := &f.Set.Instants[len(f.Set.Instants)-1]
	text := f.Set.Syms.Name(x.Text)
	if !strings.Contains(text, word) {
		return false
	}
	if !strings.HasSuffix(text, more) {
		x.Text = f.Set.Syms.Intern(text + ": " + more)
	}
	return true
}

// Date gives what the input says before its first stamp the time of that.
func (f *Filler) Date() {
	src := f.Source()
	for i := range f.Set.Instants[len(f.Set.Instants)-src.part.instants:] {
		if x := &f.Set.Instants[len(f.Set.Instants)-src.part.instants+i]; x.Time == 0 {
			x.Time = src.First
		}
	}
}

// Shift puts all that the input has said so far later: what a log is dated by may follow its lines.
func (f *Filler) Shift(by trace.Time) {
	f.Set.shift(f.source, by)
	f.at = 0
}

// Saw says that the input has a stamp, whatever else stands there: it covers that time.
func (f *Filler) Saw(at trace.Time) {
	src := f.Source()
	if at == 0 {
		return
	}
	src.First, src.Last = order.Earlier(src.First, at), max(src.Last, at)
}
