package recorder

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// Experts are what several files say. Readers of several inputs may add to it at once.
type Experts struct {
	Dumps []*ExpertDump // by the names of their files, once all are read
	mu    sync.Mutex
}

// An ExpertDump is what one file says.
type ExpertDump struct {
	File  string
	Where string     // folder of the file: dumps of one server lie beside each other
	Rank  int32      // whose tokens were counted; Unknown is those of all ranks together
	Time  trace.Time // when it was written, by its name; 0 is unknown
	// Counts are of Layers layers, each of Experts experts, which are physical ones, or logical ones
	// if Physical is false.
	Layers, Experts int
	Physical        bool
	// Passes are the forward passes of Counts by their numbers, in the order of the file. Ring tells that
	// nobody knows their numbers: these are places in a buffer that is written round and round.
	Passes []int64
	Ring   bool
	Whole  bool // the only pass is all that was recorded
	Sparse bool // layers and experts without tokens are left out, so that there may be more of them
	// Counts have the tokens of each expert, by pass and layer: see [ExpertDump.Of].
	Counts []uint32
	// Map has the logical expert of each physical one, by layer; nil is unknown. It is the last one: a
	// server that rebalances changes it.
	Map [][]int32
	// Average is the balancedness that the server itself measured over its last passes; 0 is unknown.
	Average float64
}

// Of returns what the experts of a layer got in a pass, given by its place in Passes.
func (d *ExpertDump) Of(pass, layer int) []uint32 {
	at := (pass*d.Layers + layer) * d.Experts
	return d.Counts[at : at+d.Experts]
}

// Add adds a dump.
func (s *Experts) Add(d *ExpertDump) {
	d.Where = path.Dir(strings.ReplaceAll(d.File, `\`, "/"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Dumps = append(s.Dumps, d)
}

// Finish puts dumps in order, when all were read.
func (s *Experts) Finish() {
	slices.SortStableFunc(s.Dumps, func(a, b *ExpertDump) int { return strings.Compare(a.File, b.File) })
	for _, a := range s.Dumps {
		layers, experts := a.Layers, a.Experts
		for _, b := range s.Dumps {
			if a.Sparse && b.Sparse && a.Where == b.Where {
				layers, experts = max(layers, b.Layers), max(experts, b.Experts)
			}
		}
		a.widen(layers, experts)
	}
}

// widen adds layers and experts that got no tokens, which files that say only what somebody got leave out.
func (d *ExpertDump) widen(layers, experts int) {
	if layers == d.Layers && experts == d.Experts {
		return
	}
	to := make([]uint32, layers*experts)
	for l := range d.Layers {
		copy(to[l*experts:], d.Of(0, l))
	}
	d.Layers, d.Experts, d.Counts = layers, experts, to
}

// Empty reports whether there is no dump.
func (s *Experts) Empty() bool { return s == nil || len(s.Dumps) == 0 }
