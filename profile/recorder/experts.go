package recorder

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// Experts is the content of several files. Readers of several inputs may add to it concurrently.
type Experts struct {
	Dumps []*ExpertDump // sorted by file, once all are read
	mu    sync.Mutex
}

// An ExpertDump is the content of one file.
type ExpertDump struct {
	File  string
	Where string     // directory of the file: dumps of one server are in one directory
	Rank  int32      // whose tokens were counted; Unknown if they are those of all ranks together
	Time  trace.Time // time of writing, from the file name; 0 is unknown
	// Counts cover Layers layers, each with Experts experts, which are physical, or logical if Physical is false.
	Layers, Experts int
	Physical        bool
	// Passes are the numbers of the forward passes in Counts, in the order of the file. Ring means that the numbers
	// are unknown: these are places in a ring buffer.
	Passes []int64
	Ring   bool
	Whole  bool // the only pass is the sum of the whole recording
	Sparse bool // layers and experts without tokens are omitted, so there may be more of them
	// Counts are the tokens of each expert, by pass and layer: see [ExpertDump.Of].
	Counts []uint32
	// Map has the logical expert of each physical one, by layer; nil is unknown. It is the last one: a server that
	// rebalances changes it.
	Map [][]int32
	// Average is the server's own measure of balance over its last passes; 0 is unknown.
	Average float64
}

// Of returns the counts of the experts of a layer in a pass, given by its index in Passes.
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

// Finish sorts the dumps after all were read.
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

// widen adds layers and experts without tokens, which some files omit.
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

// Empty reports whether there are no dumps.
func (s *Experts) Empty() bool { return s == nil || len(s.Dumps) == 0 }
