package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A paceKey says which steps of servers are compared with each other: those of a kind, in a role, as requests show
// them; or as profilers annotated them at a level, on the host or on its device.
type paceKey struct {
	kind     replay.Kind
	role     request.Role
	per      perStep // perSecond: requests show them, or logs and metrics
	onDevice bool
	said     said
}

// said tells who says what steps take, if neither requests nor profilers do.
type said uint8

const (
	unsaid  said = iota
	logged       // lines of batches
	scraped      // metrics that repeat the last one of these
)

// pacedSteps are the steps of a key on one side.
type pacedSteps struct {
	list []pacedStep
	work []significance.Piece // what steps have to do, and how many these are, in pieces that are longer than requests
	// tokens came out in so many steps of the requests that tell: more than one of each if drafts are accepted.
	tokens, steps float64
	servers       names
	ranks         names // that may be the last to end a step
}

type pacedStep struct {
	replay.Timed
	size   [2]int16 // of what is compared: requests or tokens, and the tokens that they attend to
	piece  int16
	server int16 // of those of its side
	last   int16 // rank that ended it last, while another waited; -1 is unknown
	waited int32 // ns
}

// paced returns the steps of a key, of which there is room for work in so many pieces.
func (d *Collected) paced(key paceKey, pieces int) *pacedSteps {
	return order.Memo(d.paces, key, func() *pacedSteps { return &pacedSteps{work: make([]significance.Piece, pieces)} })
}

// add adds a step of one piece, of which what there was to do belongs to another.
func (p *pacedSteps) add(st *pacedStep, work int, amount int64) {
	p.list = append(p.list, *st)
	of := &p.work[work]
	of.Sum, of.Of = of.Sum+float64(amount), of.Of+1
}

// kindsOfWork say what there is to do in steps.
var kindsOfWork = [...]struct {
	unit string
	of   func(*replay.Features) int64
}{replay.Prefill: {"prompt tokens", func(f *replay.Features) int64 { return f.New }}, replay.Decode: {"requests", func(f *replay.Features) int64 { return f.Requests }}}

// sizeOf tells how large a step is, as compared: requests that decode, or tokens that are computed within a fifth; and the tokens that
// they attend to, of decode steps within two fifths.
func sizeOf(kind replay.Kind, f *replay.Features, attended int64) [2]int16 {
	octaves := func(tokens int64, parts float64) int16 { return int16(parts * math.Log2(float64(max(1, tokens)))) }
	if kind == replay.Decode {
		return [2]int16{int16(min(f.Requests, math.MaxInt16)), octaves(attended, 2)}
	}
	return [2]int16{octaves(f.New, 4), octaves(attended, 4)}
}

// addPaces adds the steps of all servers, as requests show when each began and ended, and what was in it. What a
// step takes beyond its work does not depend on how long requests are, so that these pieces may be short.
func (d *Collected) addPaces(s *request.Set, overlapping *diffPieces, window *Capture) {
	type engineStep struct {
		*replay.Step
		of *replay.Engine
	}
	found, groups, mixed := map[paceKey][]engineStep{}, map[paceKey]int32{}, map[paceKey]bool{}
	run := replay.Read(s)
	for i := range run.Engines {
		e := &run.Engines[i]
		if e.Role == request.Unified && !slices.ContainsFunc(e.Steps, func(st replay.Step) bool { return st.Kind == replay.Decode }) {
			continue // it decoded unseen, for which prefills waited
		}
		for k := range e.Steps {
			if st := &e.Steps[k]; st.Start >= window.From && (window.To == 0 || st.Start < window.To) {
				key := paceKey{kind: st.Kind, role: e.Role}
				if first := order.Memo(groups, key, func() int32 { return e.Group }); first != e.Group {
					mixed[key] = true
				}
				found[key] = append(found[key], engineStep{st, e})
			}
		}
	}
	tokens, steps := 0.0, 0.0
	for i := range s.AllRequests() {
		t, n := s.Requests[i].Metrics.StepYield()
		tokens, steps = tokens+float64(t), steps+float64(n)
	}
	for key, list := range found {
		if mixed[key] {
			continue // servers of several models, which other requests ask for at another time
		}
		starts := order.Each(list, func(st engineStep) trace.Time { return st.Start })
		cut := d.pieces(cutEvenly(starts, min(maxPieces, len(starts)/minRequests)))
		of := d.paced(key, overlapping.n())
		of.tokens, of.steps = of.tokens+tokens, of.steps+steps
		for _, st := range list {
			attended := st.Context
			if st.Kind == replay.Prefill {
				attended = st.New + st.Prefix
			}
			x := pacedStep{Timed: st.Timed(), size: sizeOf(st.Kind, &st.Features, attended), piece: int16(cut.at(st.Start)), server: of.servers.index(st.of.DP()), last: -1}
			if at, waited, ok := run.Last(st.Step); ok {
				x.last, x.waited = of.ranks.index(at.String()), int32(min(waited, math.MaxInt32))
			}
			of.add(&x, overlapping.at(st.Start), kindsOfWork[st.Kind].of(&st.Features))
		}
	}
}

// addPaced adds an annotated step whose name says what was in it, and that took so long on the host or on its device.
func (d *Collected) addPaced(s *diffStep, rank string, took int64, onDevice bool, piece, pieces int) {
	n := &s.kind.StepName
	f := replay.Features{New: int64(max(0, n.Prefilled)), Requests: int64(n.Batch)}
	kind := replay.Prefill
	switch {
	case n.Kind == profile.StepDecode && n.Batch >= 0:
		kind = replay.Decode
	case n.Kind != profile.StepPrefill || n.Prefilled <= 0 || n.Decoded > 0:
		return
	}
	attended := f.New
	if n.Lengths != nil {
		f.Context = max(0, n.Lengths.ContextKeys) + max(0, n.Lengths.GenerationKeys)
		attended = f.Context
	}
	x := pacedStep{Timed: replay.Timed{Features: f, Took: max(1, took)}, size: sizeOf(kind, &f, attended), piece: int16(piece), last: -1}
	of := d.paced(paceKey{kind: kind, per: levelOf(&s.kind), onDevice: onDevice}, pieces)
	x.server = of.servers.index(rank)
	of.add(&x, piece, kindsOfWork[kind].of(&f))
}

// A Pace tells whether steps of servers take longer for the same work, or because there is more of it.
type Pace struct {
	steps         string  // "decode steps"
	Before, After float64 // what a step of the same work takes, in ns
	Change        Change
	all           [2]float64 // what all steps take, in ns
	unit          string     // of work
	work          Load       // of each step
	kind          replay.Kind
	how           significance.How
	samples       [2]significance.Sample
	annotated     bool
	most          [2]int64   // requests that a decode step has
	atMost        [2]float64 // share of the decode steps that have as many
	n             [2]int64   // steps that are compared
	yield         [2]float64 // tokens that a decode step gives to a request, as drafts are accepted; 1 of others
	only          onlyServers
	late          string // for whom the others wait since
}

// withPrefills is what lines and scrapes count as part of a decode step.
const withPrefills = " and the prefills between them"

// comparePaces compares what both sides know of steps: as profilers annotated them, where both have that.
func comparePaces(before, after *Collected, per perStep, onDevice bool) (paces []Pace) {
	keys := slices.SortedFunc(maps.Keys(before.paces), func(a, b paceKey) int { // decode first, which is most of the time
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(b.per, a.per), cmp.Compare(a.said, b.said), cmp.Compare(a.role, b.role))
	})
	annotated, known := map[replay.Kind]bool{}, map[replay.Kind]said{}
	for _, key := range keys {
		a := after.paces[key]
		if of := key.per != perSecond; a == nil || of && (key.per != per || key.onDevice != onDevice) || !of && annotated[key.kind] {
			continue
		}
		if best, ok := known[key.kind]; ok && best != key.said {
			continue
		}
		annotated[key.kind], known[key.kind] = key.per != perSecond, key.said
		paces = append(paces, comparePace(key, [2]*pacedSteps{before.paces[key], a}, before.captures > 0))
	}
	return paces
}

func comparePace(key paceKey, sides [2]*pacedSteps, captures bool) Pace {
	p := Pace{kind: key.kind, annotated: key.per != perSecond, steps: [...]string{"", "logged ", "scraped "}[key.said] + key.kind.String() + " steps" + [...]string{"", withPrefills, withPrefills}[key.said], Before: math.NaN(), After: math.NaN(), Change: Change{Change: unknownChange}}
	p.unit = kindsOfWork[key.kind].unit
	p.work = compareLoad(&diffLoad{p.unit + " per " + key.kind.String() + " step", sides[0].work}, &diffLoad{"", sides[1].work}, captures)
	for side, of := range sides {
		p.most[side], p.atMost[side] = of.fullest()
		p.yield[side] = 1
		if of.steps > 0 && key.kind == replay.Decode {
			p.yield[side] = of.tokens / of.steps
		}
		p.all[side] = order.SumRows(of.list, func(st *pacedStep) float64 { return float64(st.Took) }) / float64(len(of.list))
	}
	var common [2][]pacedStep
	for side, of := range sides {
		others := sizesOf(sides[1-side].list)
		common[side] = order.Only(of.list, func(st pacedStep) bool { return others[st.size] > 0 })
	}
	if min(len(common[0]), len(common[1])) == 0 {
		return p
	}
	// A model of either side says what the steps of the other would take. Where it has to say it of other work than it
	// is fitted to, the two disagree, and the one that sees less of a change counts.
	var by [2]significance.Change
	var samples [2][2]significance.Sample
	for model := range by {
		usual := newUsual(common[model])
		for side := range samples[model] {
			samples[model][side] = usual.sample(common[side])
		}
		s := &samples[model]
		p.how = howToCompare(s[0].Pieces, s[1].Pieces, captures)
		by[model] = p.how.Compare(s[0], s[1])
	}
	best := 0
	if !(by[0].P >= by[1].P) {
		best = 1
	}
	p.samples, p.n = samples[best], [2]int64{int64(len(common[0])), int64(len(common[1]))}
	p.Before, p.After, p.Change.Change = samples[best][0].Quantity.Value, samples[best][1].Quantity.Value, by[best]
	c := &p.Change.Change
	c.Low, c.High = min(by[0].Low, by[1].Low), max(by[0].High, by[1].High)
	if (by[0].Ratio > 1) != (by[1].Ratio > 1) {
		c.P = max(c.P, 1)
	}
	if !captures {
		p.only = findOnly(sides, common)
	}
	p.late = p.whoIsLate(sides, common)
	return p
}

// sizesOf counts steps by their size.
func sizesOf(list []pacedStep) map[[2]int16]int {
	n := map[[2]int16]int{}
	for i := range list {
		n[list[i].size]++
	}
	return n
}

// A usual says what steps usually take: by a model, corrected for what steps of each size take, which no line
// describes: kernels have room for certain numbers of requests, and graphs are captured for some.
type usual struct {
	model  replay.Model
	bySize map[[2]int16]significance.Piece
	mean   float64 // ns
}

func newUsual(list []pacedStep) *usual {
	u := &usual{model: replay.FitModel(order.EachRow(list, func(st *pacedStep) replay.Timed { return st.Timed })), bySize: map[[2]int16]significance.Piece{}}
	for i := range list {
		st := &list[i]
		p := u.bySize[st.size]
		u.bySize[st.size] = significance.Piece{Sum: p.Sum + float64(st.Took), Of: p.Of + u.model.Of(st.Features)}
		u.mean += float64(st.Took) / float64(len(list))
	}
	return u
}

// sample counts every step as the part of a mean step that one of its work usually is.
func (u *usual) sample(list []pacedStep) significance.Sample {
	n := int16(0)
	for i := range list {
		n = max(n, list[i].piece+1)
	}
	pieces := make([]significance.Piece, n)
	for i := range list {
		st := &list[i]
		size := u.bySize[st.size]
		p := &pieces[st.piece]
		p.Sum += float64(st.Took)
		p.Of += u.model.Of(st.Features) * size.Sum / size.Of / u.mean
	}
	return significance.Sample{Quantity: significance.Apart.Mean(pieces), Pieces: pieces}
}

// apart tells of steps of which none of one side has as much to do as one of the other.
func (p *Pace) apart() string {
	if p.n[0] > 0 || !p.work.Change.matters() {
		return ""
	}
	return fmt.Sprintf("%s have %s (%s) and take %s: the steps of both are too different to tell what the same work takes", p.steps, p.works(), p.work.Change.Sure, pairInWords(int64(p.all[0]), int64(p.all[1])))
}

// asLong is how much longer or shorter steps may be, by the ends of the interval, of which it is said that they take
// as long.
const asLong = 0.05

// waitsChanged reports whether requests wait longer or shorter than before, by a part of their time that everyone sees.
func (d *Diff) waitsChanged() bool {
	queued := func(l Load) bool {
		return strings.HasPrefix(l.Name, series.Metrics[series.Queued].Name) && l.Change.matters()
	}
	r := d.Row(Request, metric.Queue.Name)
	return r != nil && r.Changed() && d.part(r, r.Effect()) >= visiblePart || slices.ContainsFunc(d.Load, queued)
}

// told is the change that is told: that of some servers if it is theirs only.
func (p *Pace) told() *Change {
	if len(p.only.names) > 0 {
		return &p.only.change
	}
	return &p.Change
}

// slower tells of steps that take longer or shorter for the same work, and of what their work makes of that.
func (p *Pace) slower() string {
	before, after, change, where := p.Before, p.After, p.told(), ""
	if len(p.only.names) > 0 {
		before, after, where = p.only.before, p.only.after, " on "+words.Some(p.only.names, toldNames)+" only"
	}
	if !change.matters() {
		return ""
	}
	word := "longer"
	if change.Change.Ratio < 1 {
		word = "less time"
	}
	same := "the same work"
	if yield := p.yield[1] / p.yield[0]; math.Abs(yield-1) >= minChange {
		same = fmt.Sprintf("as many requests, and give %s -> %s tokens to each, which makes %+.0f %% per token", words.ThreeDigits(p.yield[0]), words.ThreeDigits(p.yield[1]), 100*(change.Change.Ratio/yield-1))
	}
	text := fmt.Sprintf("%s take %s for %s%s: %s%s%s", p.steps, word, same, where, pairInWords(int64(before), int64(after)), change.inBrackets(), p.late)
	if where == "" && p.work.Change.matters() && math.Abs(p.all[1]/p.all[0]/p.Change.Change.Ratio-1) >= minChange {
		text += fmt.Sprintf(", and all of them %s with %s", pairInWords(int64(p.all[0]), int64(p.all[1])), p.works())
	}
	return text
}

// busier tells of steps that take as long as they did for the same work, and are longer or shorter since there is more of it,
// or less.
func (p *Pace) busier() string {
	if !p.work.Change.matters() || !p.asLong() || math.Abs(p.all[1]/p.all[0]-1) < minChange {
		return ""
	}
	return fmt.Sprintf("%s %s since they have %s (%s): for the same work they take as long (%s)",
		p.steps, pairInWords(int64(p.all[0]), int64(p.all[1])), p.works(), p.work.Change.Sure, p.Change.interval(", CI ", ""))
}

// same tells of steps that take as long as they did.
func (p *Pace) same() string {
	if !p.asLong() {
		return ""
	}
	return fmt.Sprintf("%s take as long for the same work (%s)", p.steps, p.Change.interval(", CI ", ""))
}

// asLong reports whether steps take as long as they did for the same work, beyond doubt.
func (p *Pace) asLong() bool {
	c := &p.Change.Change
	return p.Change.tested() && !p.Change.matters() && len(p.only.names) == 0 && c.Low >= 1-asLong && c.High <= 1+asLong
}

// capped tells that decode steps have a limit which they did not have, or had one, if requests wait longer or shorter than before:
// most steps have exactly as many requests as any.
func (p *Pace) capped(waits bool) string {
	const mostly = 0.5
	if p.kind != replay.Decode || !waits || p.most[0] == p.most[1] {
		return ""
	}
	limited, when := 1, "have"
	if p.most[0] < p.most[1] {
		limited, when = 0, "had"
	}
	if p.atMost[limited] < mostly {
		return ""
	}
	return fmt.Sprintf("%s have %d -> %d requests at most, and %.0f %% of them %s %d: a limit, for which requests wait (%s)",
		p.steps, p.most[0], p.most[1], 100*p.atMost[limited], when, p.most[limited], finding.Likely)
}

// fullest returns how many requests a step has at most, and the share of the steps that have as many.
func (p *pacedSteps) fullest() (most int64, share float64) {
	n := 0
	for i := range p.list {
		switch of := p.list[i].Requests; {
		case of > most:
			most, n = of, 1
		case of == most:
			n++
		}
	}
	return most, float64(n) / float64(len(p.list))
}

// works says how much there is to do in a step.
func (p *Pace) works() string {
	return fmt.Sprintf("%s -> %s %s each", words.ThreeDigits(p.work.Before), words.ThreeDigits(p.work.After), p.unit)
}

// loads are the rows of a pace in the table of the load.
func (p *Pace) loads() []Load {
	return []Load{p.work, {Name: "ms of " + p.steps + " for the same work", Before: p.Before / 1e6, After: p.After / 1e6, Change: p.Change}}
}

// paces tells what there is to say of the paces of servers.
func (d *Diff) paces(say func(*Pace) string) (says []string) {
	for i := range d.Paces {
		if text := say(&d.Paces[i]); text != "" {
			says = append(says, text)
		}
	}
	return says
}

// pacesTell reports whether paces say what a load does: tokens per second in steps are more where steps are larger.
func (d *Diff) pacesTell(l *Load) bool {
	return slices.ContainsFunc(metric.Speeds[:], func(m *metric.Metric) bool { return m.Title == l.Name }) && d.annotated((*Change).tested)
}

// annotated reports whether a pace of steps that profilers annotated is as asked.
func (d *Diff) annotated(is func(*Change) bool) bool {
	return slices.ContainsFunc(d.Paces, func(p Pace) bool { return p.annotated && is(&p.Change) })
}
