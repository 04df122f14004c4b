package rank

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A StepGroup is the tensor parallel ranks of one host, pipeline stage, and DP rank, in one kind of step that they
// take together.
type StepGroup struct {
	Name  string // "decode c94b1e02 DP1"
	Kind  StepKind
	Ranks []place.Location // sorted by TP
	Steps int              // steps that at least two ranks have
	Late  []straggler.Lateness
	// Stragglers are the ranks that the others wait for; usually there are none.
	Stragglers []straggler.Straggler

	gathering *straggler.SyncSamples
	likely    []straggler.Straggler // possible stragglers
	enough    []bool                // by rank: it is late enough to matter, even if that may be chance
	held      []map[int]int64       // for each straggler in beginning prefills: how much longer answers waited for it, in ns, by request
}

// History returns how late the ranks were, in equal parts of the time.
func (g *StepGroup) History(parts int) *straggler.History { return g.gathering.History(parts) }

// StepKind is a kind of step that the ranks of a group compute together.
type StepKind uint8

const (
	DecodeStep StepKind = iota
	PrefillStep
	// The same steps, by when ranks begin them: a late host keeps the others waiting in the first collective, after
	// which all ranks end together.
	decodeStart
	prefillStart
)

// timed is the number of kinds of steps whose duration is compared between servers.
const timed = int(PrefillStep) + 1

// String returns the word that reports print.
func (k StepKind) String() string { return rankSteps[k].word }

// Pace returns the name of the metric by which servers are slower in such steps.
func (k StepKind) Pace() string { return k.String() + " step" }

// rankSteps describes each kind: the stage of a request that is a step, and its names.
var rankSteps = [...]struct {
	word   string
	stage  request.Meaning
	one    string
	begins bool // ranks are compared by when they begin it, not by when they end it
}{
	DecodeStep:   {"decode", request.Stepping, "decode step", false},
	PrefillStep:  {"prefill", request.Prefilling, "prefill", false},
	decodeStart:  {"decode start", request.Stepping, "decode step", true},
	prefillStart: {"prefill start", request.Prefilling, "prefill", true},
}

// minStepLateness is the least lateness that counts, in ns: TP0's scheduler also talks to the tokenizer and the
// detokenizer.
const minStepLateness = 300_000

// skippedSteps counts what is not compared.
type skippedSteps struct {
	unequal int // parts of requests whose ranks have different numbers of unnumbered steps
	alone   int // steps that only one rank has
	apart   int // groups with ranks on several hosts
}

// A stepWalk collects the steps of all teams.
type stepWalk struct {
	*teams
	rows [][len(rankSteps)]stepRows
	// prefills is, for each team, when its first rank ended prefills, or chunks of them.
	prefills [][]trace.Time
	skipped  skippedSteps
	apart    map[string]bool

	spans [len(rankSteps)][][]rankStep // scratch space: steps of each thread of the current team
	rest  [][]rankStep                 // steps that are not joined yet
}

// measureSteps compares when the ranks of every team begin and end their steps. Ranks give a batch different IDs, so
// steps are matched by request and number.
func (r *Ranks) measureSteps(of *place.RankSet, all load.Bulk) {
	w := &stepWalk{teams: newTeams(of), apart: map[string]bool{}}
	w.rows = make([][len(rankSteps)]stepRows, len(w.ranksOf))
	w.prefills = make([][]trace.Time, len(w.ranksOf))
	for p := range of.Set.ServingParts {
		if all.Holds(&of.Set.Requests[p.Request]) {
			w.addPart(p)
		}
	}
	parallel.Each(len(w.prefills), func(team int) { slices.Sort(w.prefills[team]) })
	r.Groups = make([]*StepGroup, len(rankSteps)*len(w.rows))
	parallel.Each(len(r.Groups), func(i int) {
		kind, team := i/len(w.rows), i%len(w.rows)
		if rows := &w.rows[team][kind]; len(rows.list) > 0 {
			r.Groups[i] = w.newGroup(team, StepKind(kind), rows)
		}
	})
	r.Groups = slices.DeleteFunc(r.Groups, func(g *StepGroup) bool { return g == nil })
	ends := slices.IndexFunc(r.Groups, func(g *StepGroup) bool { return rankSteps[g.Kind].begins })
	if ends >= 0 {
		r.Groups, r.starts = r.Groups[:ends:ends], r.Groups[ends:]
	}
	w.skipped.apart = len(w.apart)
	r.skipped = w.skipped
}

// addPart adds the steps of the teams that work on a part.
func (w *stepWalk) addPart(p *request.Part) {
	members := w.members(p)
	for from := 0; from < len(members); {
		to := from + 1
		for to < len(members) && members[to].team == members[from].team {
			to++
		}
		for _, m := range members[:from] {
			if w.isApart(m.team, members[from].team) {
				w.apart[w.instance(m.team)] = true
			}
		}
		if to-from > 1 {
			w.addSteps(p, members[from:to])
		}
		from = to
	}
}

// A rankStep is a step on one rank, with what identifies it on the others.
type rankStep struct {
	number   int64 // request.Unknown
	again    int32 // number of earlier steps with the same number
	from, to trace.Time
	met      trace.Time // when it began or ended, whichever is compared
}

func (x *rankStep) before(y *rankStep) bool {
	return x.number < y.number || x.number == y.number && x.again < y.again
}

// addSteps adds the steps of the members of one team.
func (w *stepWalk) addSteps(p *request.Part, members []teamRank) {
	for i, m := range members {
		w.readSpans(i, m)
	}
	for kind := range rankSteps {
		if spans := w.spans[kind][:len(members)]; w.comparable(spans, StepKind(kind)) {
			rows := &w.rows[members[0].team][kind]
			rows.width = len(w.ranksOf[members[0].team])
			w.join(p, members, spans, rows)
		} else {
			w.skipped.unequal++
		}
	}
}

// comparable reports whether the steps of threads can be matched: they are numbered decode steps, or all threads have
// equally many.
func (w *stepWalk) comparable(spans [][]rankStep, kind StepKind) bool {
	numbered := !slices.ContainsFunc(spans, func(of []rankStep) bool { return len(of) > 0 && of[0].number == request.Unknown })
	if numbered && rankSteps[kind].stage != request.Prefilling {
		return true
	}
	return !slices.ContainsFunc(spans, func(of []rankStep) bool { return len(of) != len(spans[0]) })
}

// readSpans reads the steps of the thread of the i-th member, in order. For the first member it also notes when
// prefills ended.
func (w *stepWalk) readSpans(i int, m teamRank) {
	for kind := range w.spans {
		if i == len(w.spans[kind]) {
			w.spans[kind] = append(w.spans[kind], nil)
		}
		w.spans[kind][i] = w.spans[kind][i][:0]
	}
	w.ranks.Set.EachSelectedStage(w.ranks.Set.StagesOf(m.thread), true, func(row int, _ bool) {
		span := w.ranks.Set.Row(row)
		if i == 0 && (span.Means == request.Prefilling || span.Means == request.PrefillingChunk) {
			w.prefills[m.team] = append(w.prefills[m.team], span.End)
		}
		if span.End < span.Start || !request.Plausible(span.Start, span.End) {
			return
		}
		for kind := range rankSteps {
			if met := w.meets(row, StepKind(kind)); met != 0 {
				w.spans[kind][i] = append(w.spans[kind][i], rankStep{number: int64(span.Step), from: span.Start, to: span.End, met: met})
			}
		}
	})
	for kind := range w.spans {
		list := w.spans[kind][i]
		slices.SortStableFunc(list, func(x, y rankStep) int { return cmp.Or(cmp.Compare(x.number, y.number), cmp.Compare(x.to, y.to)) })
		for k := 1; k < len(list); k++ {
			if list[k].number == list[k-1].number {
				list[k].again = list[k-1].again + 1
			}
		}
	}
}

// meets returns when other ranks need this one for the step in a row: its end, or its beginning. It returns 0 if the
// row is not a step of that kind, or that time is unknown. A step begins at the scheduler's event, which may come a
// while after the row begins: the row of a decode step begins where the one before ended.
func (w *stepWalk) meets(row int, kind StepKind) trace.Time {
	span, of := w.ranks.Set.Row(row), &rankSteps[kind]
	switch {
	case span.Means != of.stage:
		return 0
	case !of.begins:
		return span.End
	}
	mode := request.DecodeMode
	if of.stage == request.Prefilling {
		mode = request.PrefillMode
	}
	for _, e := range w.ranks.Set.InstantsOf(row) {
		if _, ok := cause.BatchOf(&e, mode); ok {
			return e.Time
		}
	}
	if mode == request.DecodeMode {
		return 0
	}
	return span.Start
}

// join adds a row for every step that several members have.
func (w *stepWalk) join(p *request.Part, members []teamRank, spans [][]rankStep, rows *stepRows) {
	w.rest = append(w.rest[:0], spans...)
	spans = w.rest
	for {
		var next *rankStep
		for i := range spans {
			if len(spans[i]) > 0 && (next == nil || spans[i][0].before(next)) {
				next = &spans[i][0]
			}
		}
		if next == nil {
			return
		}
		step, here := *next, 0
		row := rows.add(p, step)
		for i := range spans {
			if len(spans[i]) > 0 && !step.before(&spans[i][0]) {
				row[members[i].slot] = int64(spans[i][0].met)
				spans[i] = spans[i][1:]
				here++
			}
		}
		if here < 2 {
			rows.drop()
			w.skipped.alone++
		}
	}
}

// newGroup compares the steps of a team.
func (w *stepWalk) newGroup(team int, kind StepKind, rows *stepRows) *StepGroup {
	g := &StepGroup{Name: w.instance(int32(team)), Kind: kind}
	var names []string
	for _, place := range w.ranksOf[team] {
		g.Ranks = append(g.Ranks, w.ranks.Places[place])
		names = append(names, w.ranks.Places[place].String())
	}
	syncPoints := straggler.NewSyncSamples(names, minStepLateness)
	syncPoints.Group, syncPoints.Verb, syncPoints.What = g.Name, "ends", rankSteps[kind].one+"s"
	if rankSteps[kind].begins {
		syncPoints.Verb = "begins"
	}
	syncPoints.Intermittent, syncPoints.Traits = true, stepTraits
	rows.gather(syncPoints, w.prefills[team])
	g.gathering = syncPoints
	g.Steps, g.Late, g.Stragglers = len(syncPoints.SyncPoints), syncPoints.Measure(), syncPoints.Stragglers()
	g.likely = syncPoints.Likely()
	if rankSteps[kind].begins {
		g.Stragglers = slices.DeleteFunc(g.Stragglers, func(s straggler.Straggler) bool { return !syncPoints.Lengthens(&s) })
	}
	g.enough = syncPoints.Matters()
	for i := range g.Stragglers {
		s := &g.Stragglers[i]
		s.Location = g.Ranks[s.Rank]
		s.Evidence = append(s.Evidence, s.Confidence()...)
	}
	return g
}

// note adds notes on what was not compared.
func (s *skippedSteps) note(r *table.Table) {
	for _, n := range []struct {
		count       int
		thing, text string
	}{
		{s.apart, "group", "of ranks on several hosts, whose clocks may differ by more than the ranks do: only those of one host are compared"},
		{s.alone, "step", "left out: spans of the other ranks are missing"},
		{s.unequal, "request", "left out: some ranks have more steps than others, and they are not numbered"},
	} {
		if n.count > 0 {
			r.Note("%s %s", words.Counted(n.count, n.thing), n.text)
		}
	}
}

// stepRows holds the steps of the requests of a team.
type stepRows struct {
	width int // number of ranks
	list  []stepRow
	ends  []int64 // of every row, one per rank; may be NoArrival
}

// A stepRow is a step of a request, from one rank that has it.
type stepRow struct {
	end     trace.Time
	took    int64 // ns
	request int32
	row     int32 // index in ends, in units of width
}

// add adds a row and returns its ends, to be filled in.
func (s *stepRows) add(p *request.Part, step rankStep) []int64 {
	row := len(s.list)
	s.list = memory.Append(s.list, stepRow{step.to, int64(step.to - step.from), int32(p.Request), int32(row)})
	for range s.width {
		s.ends = memory.Append(s.ends, straggler.NoArrival)
	}
	return s.ends[row*s.width:]
}

// drop removes the last row.
func (s *stepRows) drop() {
	s.list = s.list[:len(s.list)-1]
	s.ends = s.ends[:len(s.ends)-s.width]
}

// stepTraits are conditions that lateness in steps may depend on.
var stepTraits = []straggler.Trait{
	{Phrase: func(least float64) string { return fmt.Sprintf("with %.0f requests or more in the batch", least) }},
	{Phrase: func(float64) string { return "with a prefill in or right before them" }},
}

// gather merges the requests of a batch into one step, and records the steps as sync points. The requests of a batch
// end within request.SameBatch of each other on a rank, and no request is in a batch twice. A rank arrives with its
// last request. The step takes the shortest time of its requests, because others include what was computed before
// they joined. prefills are the ends of prefills on the first rank, sorted.
func (s *stepRows) gather(g *straggler.SyncSamples, prefills []trace.Time) {
	slices.SortFunc(s.list, func(x, y stepRow) int { return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.row, y.row)) })
	batch := map[int32]int{} // by request: the last batch that it was in
	arrivals := make([]int64, s.width)
	for from, id := 0, 1; from < len(s.list); id++ {
		for r := range arrivals {
			arrivals[r] = straggler.NoArrival
		}
		first := s.list[from]
		took, to := first.took, from
		for ; to < len(s.list); to++ {
			row := s.list[to]
			if to > from && row.end-s.list[to-1].end > request.SameBatch || batch[row.request] == id {
				break
			}
			batch[row.request] = id
			took = min(took, row.took)
			for r, end := range s.ends[int(row.row)*s.width : int(row.row+1)*s.width] {
				arrivals[r] = max(arrivals[r], end)
			}
		}
		// Earlier prefills were removed with earlier steps.
		prefilled, _ := slices.BinarySearch(prefills, s.list[to-1].end+request.SameBatch)
		prefills = prefills[prefilled:]
		g.Meet(first.end, arrivals, took, float64(to-from), float64(min(1, prefilled)))
		from = to
	}
}
