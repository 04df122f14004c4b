package series

import (
	"cmp"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Filler adds the data of one input to a set. Inputs are read one after another.
type Filler struct {
	Set    *Set
	source uint32
	within uint32
	grain  uint32 // the power of ten for within, in units of 100 ns
	line   uint32
	at     trace.Time // of the last sample; unit is that of its time
	unit   uint8
}

// Fill starts an input.
func (s *Set) Fill(name, encoding string) *Filler {
	s.Sources = append(s.Sources, Source{Name: name, Encoding: encoding, part: span{instant: len(s.Instants)}})
	return &Filler{Set: s, source: uint32(len(s.Sources) - 1)}
}

// Source returns the description of the input, until another one starts.
func (f *Filler) Source() *Source { return &f.Set.Sources[f.source] }

// Within sets the resolution of the following stamps, in ns: an event happened at its stamp, or up to that
// much later.
func (f *Filler) Within(ns int64) {
	f.within, f.grain = uint32(min(ns/1000, math.MaxUint32)), 0
	for most := int64(100); most < ns; most *= 10 {
		f.grain++
	}
}

// Line sets the line of the following data.
func (f *Filler) Line(n int64) { f.line = uint32(n) & (1<<lineBits - 1) }

// Server returns the index of a server, adding it if it is new. Servers are identified by host and name.
func (f *Filler) Server(x Server) int32 {
	key := Server{Host: x.Host, Name: x.Name}
	i := order.At(f.Set.serverOf, &f.Set.Servers, key, func() Server { return key })
	f.SetServer(i, x.Role, x.Engine)
	return i
}

// SetServer sets what a server does and which engine it runs, as soon as that is known; "" is unknown.
// Another input may also set it.
func (f *Filler) SetServer(server int32, role, engine string) {
	x := &f.Set.Servers[server]
	if x.Role == "" || x.Role == "unified" && role != "" {
		x.Role = role
	}
	x.Engine = cmp.Or(x.Engine, engine)
}

// Listens sets the address where a server listens, by which routers refer to it.
func (f *Filler) Listens(server int32, address string) {
	x := &f.Set.Servers[server]
	x.Address = cmp.Or(x.Address, address)
}

// about records that the input has data about a place.
func (s *Source) about(place int32) {
	for int(place)/64 >= len(s.places) {
		s.places = append(s.places, 0)
	}
	s.places[place/64] |= 1 << (place % 64)
}

// Place returns the index of a place, adding it if it is new.
func (f *Filler) Place(x Place) int32 {
	i := indexOf(f.Set.placeOf, &f.Set.Places, x)
	f.Source().about(i)
	return i
}

// Series returns the index of the series of a metric at a place, adding it if it is new.
func (f *Filler) Series(metric MetricID, place int32) int32 {
	return f.SeriesOf(Series{Metric: metric, Place: place})
}

// SeriesOf is Series for a series with a label, or for a bucket of a histogram.
func (f *Filler) SeriesOf(x Series) int32 {
	return indexOf(f.Set.seriesOf, &f.Set.List, x)
}

// Metric returns the ID of a metric that only its producer knows, by name, adding it if it is new.
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

// Add adds a sample. A NaN is left out: nothing was measured.
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

// Instant adds an event with its text: one line without prompts or keys.
func (f *Filler) Instant(x Instant, text string) {
	f.Saw(x.Time)
	x.Source, x.Within, x.Count, x.Text = f.source, f.within, max(1, x.Count), f.Set.Syms.Intern(text)
	f.Set.Instants = append(f.Set.Instants, x)
	f.Source().part.instants++
}

// Explain appends details from a later line to the text of the last instant, if its text contains word.
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

// Date gives instants before the input's first stamp the time of that stamp.
func (f *Filler) Date() {
	src := f.Source()
	for i := range f.Set.Instants[len(f.Set.Instants)-src.part.instants:] {
		if x := &f.Set.Instants[len(f.Set.Instants)-src.part.instants+i]; x.Time == 0 {
			x.Time = src.First
		}
	}
}

// Shift moves everything that the input has reported so far to a later time: the date of a log may follow its lines.
func (f *Filler) Shift(by trace.Time) {
	f.Set.shift(f.source, by)
	f.at = 0
}

// Saw records that the input has a stamp, whatever else is there: the input covers that time.
func (f *Filler) Saw(at trace.Time) {
	src := f.Source()
	if at == 0 {
		return
	}
	src.First, src.Last = order.Earlier(src.First, at), max(src.Last, at)
}
