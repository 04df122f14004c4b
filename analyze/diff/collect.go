package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/measured"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Side describes one of the two captures.
type Side struct {
	Label string
	// Requests, and how many of them finished; request.Unknown without any OTLP.
	Requests, Finished int64
	Ranks, Steps       int64      // recorded by profilers; request.Unknown without any
	First, Last        trace.Time // bounds of what was compared
	// RequestPieces and StepPieces are the numbers of pieces into which the capture was cut to tell change from noise.
	RequestPieces, StepPieces int
	Within                    []Within // changes within a single capture with requests, in order of time, that the other side does not share
}

func (s *Side) widen(first, last trace.Time) {
	s.First, s.Last = order.Earlier(s.First, first), max(s.Last, last)
}

// A Collected is what a comparison needs from a capture.
type Collected struct {
	in       *distribution.Store
	side     Side
	captures compare.Captures // the captures it is made of

	setup  []setup.Setting
	groups map[diffKey][]*diffGroup // by rank; has the groups of steps once settle has chosen their kind
	// Requests and finished requests by piece.
	requests, finished diffUnits
	outermost          map[string]bool // names of the gateway spans that are requests as a whole
	serving            map[string]bool // names of the ranks among those in requests: no gateways or tokenizers
	loads              map[*metric.Metric]*compare.Amount
	measured           measured.Loads // from logs and metrics
	paces              pace.Side
	// What profiled totals can be divided by: seconds, and steps of every kind, by piece; and how long the steps took.
	work         [numPer]diffUnits
	steps        [numPer]map[diffKey]*diffGroup
	periods      [numPer]map[diffKey]*diffGroup // times of steps on the device
	hostAhead    bool                           // hosts run ahead of their devices, where the time of steps counts then: see stepWork
	per          perStep
	profileRanks []string // ranks with any rows
}

// NewCollected returns an empty Collected for one side of a comparison, to which [Collected.Add] adds n captures
// one after the other. Each of these is one observation, which shows how much captures of the same thing differ;
// both sides must be made this way. If n is 0, there is a single capture, which is cut into pieces.
//
// It holds 4 bytes per duration, for up to 32 million durations. Beyond that, percentiles of rows with many
// durations are off by 0.4 % at most.
func NewCollected(n int) *Collected {
	return &Collected{in: &distribution.Store{Limit: distribution.MaxHeld / 2}, captures: compare.Captures{N: n}, groups: map[diffKey][]*diffGroup{}, loads: map[*metric.Metric]*compare.Amount{}, paces: pace.Side{},
		requests: diffUnits{}, finished: diffUnits{}, serving: map[string]bool{}, outermost: map[string]bool{},
		side: Side{Requests: request.Unknown, Finished: request.Unknown, Ranks: request.Unknown, Steps: request.Unknown}}
}

// Add reads a capture of the side; the capture may be closed afterward. It reports whether the capture has anything to compare.
func (d *Collected) Add(c Capture) bool {
	before := d.size()
	if d.side.Label != "" {
		d.side.Label += ", "
	}
	d.side.Label += c.Label
	if c.Requests != nil {
		d.collectRequests(c.Requests, &c)
		if !d.captures.Whole() && c.From == 0 && c.To == 0 { // whoever asks for a window has chosen one piece of the capture
			d.side.Within = changesWithin(c.Requests, d.paces.HasSteps())
		}
	}
	if c.Series != nil {
		d.collectSeries(c.Series, &c)
	}
	ranks := 0
	if c.Profiles != nil && len(c.Profiles.Ranks) > 0 {
		ranks = d.collectProfiles(&c, &profilewalk.Options{From: c.From, To: c.To})
	}
	d.setup = setup.Join(d.setup, setup.Of(c.Requests, c.Inventory, ranks))
	d.captures.Added++
	return d.size() > before
}

// collectSeries adds what logs and metrics measured.
func (d *Collected) collectSeries(s *series.Set, window *Capture) {
	from, to, ok := s.Bounds()
	if !ok {
		return
	}
	from, to = max(from, window.From), min(to, cmp.Or(window.To, to))
	if from >= to {
		return
	}
	d.side.widen(from, to)
	pieces := d.captures.Pieces(compare.CutTime(from, to, compare.MaxPieces))
	if servers := d.measured.Add(s, from, to, pieces, d.paces); servers != "" {
		d.setup = setup.Join(d.setup, []setup.Setting{{Name: "servers in logs and metrics", Before: servers}})
	}
}

// size counts what was collected: groups of durations, steps, and seconds that logs and metrics cover.
func (d *Collected) size() float64 {
	n := d.measured.Extent()
	for _, groups := range d.groups {
		n += float64(len(groups))
	}
	for _, steps := range d.work[perPart:] {
		for _, of := range steps[""] {
			n += of
		}
	}
	return n
}

// settle decides what totals of kernels are divided by, and whether the time of a step is that of its work on the device.
func (d *Collected) settle(per perStep, onDevice bool) {
	for _, of := range [...]map[diffKey]*diffGroup{d.steps[d.per], d.periods[d.per]} {
		for key := range of {
			delete(d.groups, key)
		}
	}
	d.per = per
	steps := d.steps[per]
	if onDevice {
		steps = d.periods[per]
	}
	for key, g := range steps {
		d.groups[key] = []*diffGroup{g}
	}
	if per == perSecond || d.side.Ranks < 0 {
		return
	}
	d.side.Steps = 0
	for _, n := range d.work[per][""] {
		d.side.Steps += int64(n)
	}
}

// Shares reports whether two captures have anything in common that can be compared: requests, profiled ranks, or logs and metrics.
func (d *Collected) Shares(o *Collected) bool {
	return d.measured.Any() && o.measured.Any() || min(d.side.Requests, o.side.Requests) >= 0 || min(d.side.Ranks, o.side.Ranks) >= 0
}

// Holds names the kinds of data that the capture has and another one may share.
func (d *Collected) Holds() string {
	var list []string
	if d.side.Requests >= 0 {
		list = append(list, "requests")
	}
	if d.side.Ranks >= 0 {
		list = append(list, "profiler data")
	}
	if d.measured.Any() {
		list = append(list, "logs or metrics")
	}
	return cmp.Or(strings.Join(list, " and "), "none of requests, profiler data, and metrics")
}

// put adds a group of durations under a key.
func (d *Collected) put(key diffKey, g *diffGroup) { d.groups[key] = append(d.groups[key], g) }

// units returns what the totals of a key are divided by, by piece; keys are those whose groups it sums up. A stage that
// several ranks run for each request is divided by requests and ranks, so that deployments of different sizes can be compared.
func (d *Collected) units(key diffKey, keys []diffKey) []float64 {
	switch {
	case key.Kind == Request:
		return d.finished[""]
	case key.Kind == Stage && key.Rank == "" && len(keys) > 0:
		return d.requestsOfRanks(keys)
	case key.Kind == Stage:
		return d.requestsOf(key.Rank)
	}
	return d.work[d.per][key.Rank]
}

// requestsOfRanks returns the sum, over the ranks of some keys, of the requests that each worked on, by piece.
func (d *Collected) requestsOfRanks(keys []diffKey) []float64 {
	sum := make([]float64, len(d.requests[""]))
	for _, key := range keys {
		for piece, n := range d.requestsOf(key.Rank) {
			sum[piece] += n
		}
	}
	return sum
}

// requestsOf returns how many requests a rank worked on, by piece. A rank whose spans belong
// to no request counts as working for all of them.
func (d *Collected) requestsOf(rank string) []float64 {
	if of := d.requests[rank]; of != nil {
		return of
	}
	return d.requests[""]
}

// renameRank renames the rank of profiled data.
func (d *Collected) renameRank(from, to string) {
	d.profileRanks = []string{to}
	for _, key := range d.keys() {
		if key.Kind.profiled() && key.Rank == from {
			groups := d.groups[key]
			delete(d.groups, key)
			key.Rank = to
			d.groups[key] = groups
		}
	}
	work := d.work[d.per]
	work[to] = work[from]
	delete(work, from)
}

// keys returns all keys, in order.
func (d *Collected) keys() []diffKey { return slices.SortedFunc(maps.Keys(d.groups), diffKey.compare) }

// withoutHosts returns the names of ranks without the hosts in parentheses, if they remain
// unique: tomorrow, the same rank runs on another machine.
func withoutHosts(ranks []string) []string {
	short, seen := make([]string, len(ranks)), map[string]bool{}
	for i, name := range ranks {
		short[i] = name
		if rank, _, ok := strings.Cut(name, " ("); ok {
			short[i] = rank
		}
		if seen[short[i]] {
			return ranks
		}
		seen[short[i]] = true
	}
	return short
}
