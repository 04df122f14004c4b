package request

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// These are the procs of planted sets.
const (
	gatewayProc = iota
	prefillProc
	decodeProc  // TP0
	decodeProc1 // TP1
	plantedProcs
)

// A plant describes the requests of a planted set. Times are in us unless stated otherwise.
type plant struct {
	requests int
	apart    int                             // us between requests; 0 means 1000
	steps    func(r int) int                 // number of tokens after the first; nil means 3
	shift    [plantedProcs]trace.Time        // how far the clock of a proc is ahead, in ns
	change   func(s *Set, r int, q *Request) // may be nil
}

// planted returns a set of requests through a gateway, a prefill and a decode server with
// two ranks, whose times are all as they were made here:
//
//	gateway   0 ............................................. end+30
//	prefill     100 ... 500: connects, waits, prefills 220-400, sends 410-480
//	decode      120 ........................................ end+10
//	            connects 130-190, receives 195-490, then a step each 100 us
func planted(t testing.TB, p plant) *Set {
	t.Helper()
	b := newPlanter(p)
	for r := range p.requests {
		b.request(r)
	}
	return b.finish()
}

// A planter fills the tables of a planted set.
type planter struct {
	plant
	s     *Set
	names map[string]trace.Sym
	above []int32
}

func newPlanter(p plant) *planter {
	syms, names := trace.NewSymbols(), map[string]trace.Sym{}
	for _, name := range []string{"http_request", "route", "request", "thread", "connect", "wait", "prefill", "send", "receive", "decode", "step"} {
		names[name] = syms.Intern(name)
	}
	s := NewSet(syms, trace.NewArgs(), &trace.Diags{})
	s.Files, s.Writers, s.Sources = []File{{Name: "planted.jsonl"}}, []Writer{{}}, []Source{{}}
	rank := func(tp int) trace.Rank {
		r := trace.NoRank
		r.TP = int16(tp)
		return r
	}
	s.Procs = []Proc{
		{Label: "smg", Role: Router, Rank: trace.NoRank, Service: "smg"},
		{Host: "aaaa1111bbbb", Label: "Prefill Scheduler", Role: Prefill, Rank: rank(0), Schedules: true},
		{Host: "cccc2222dddd", Label: "Decode Scheduler", Role: Decode, Rank: rank(0), Schedules: true},
		{Host: "eeee3333ffff", Label: "Decode Scheduler", Role: Decode, Rank: rank(1), Schedules: true},
	}
	if p.steps == nil {
		p.steps = func(int) int { return 3 }
	}
	p.apart = cmp.Or(p.apart, 1000)
	return &planter{plant: p, s: s, names: names}
}

// row adds a row of proc with times in us from the start of the request, and returns its index.
func (b *planter) row(r int, kind Kind, above, proc int, name string, from, to int, row Row) int {
	at := func(us int) trace.Time { return trace.Time(1000*(b.apart*r+us)) + b.shift[proc] }
	row.Kind, row.Proc, row.Name, row.Start, row.End, row.Place = kind, int32(proc), b.names[name], at(from), at(to), trace.InLine(uint32(len(b.s.Rows)+1))
	row.Instants = uint32(len(b.s.Instants))
	b.s.Rows, b.above = append(b.s.Rows, row), append(b.above, int32(above))
	return len(b.s.Rows) - 1
}

// part adds a part with its root.
func (b *planter) part(r, gateway, proc, from, to int) (part, root int) {
	s := b.s
	part = len(s.Parts)
	root = b.row(r, Root, gateway, proc, "request", from, to, Row{Thread: None, Part: int32(part)})
	rid := fmt.Sprintf("%s-%04d", s.Procs[proc].Role, r)
	s.Parts = append(s.Parts, Part{Root: root, Role: s.Procs[proc].Role, RID: s.NewText(rid), FullID: s.NewText("full-" + rid), Room: s.NewText(fmt.Sprintf("0x%x", r+16)),
		Proc: proc, Gateway: gateway, Trace: [2]uint64{0, uint64(r + 1)}, Start: s.Rows[root].Start, End: s.Rows[root].End, Model: s.Syms.Intern("m")})
	return part, root
}

// thread adds a thread of proc with its stages, each {name, meaning, from, to}. A stage that begins
// within the previous one is nested in it.
func (b *planter) thread(r, part, root, proc int, stages []plantedStage) {
	s, t := b.s, len(b.s.Threads)
	of := Row{Thread: int32(t), Part: int32(part)}
	th := Thread{Part: part, Proc: proc}
	var below []uint32
	th.Row = b.row(r, ThreadRow, root, proc, "thread", stages[0].from, stages[len(stages)-1].to, of)
	outer := None
	for _, st := range stages {
		of.Means, of.Phase = st.means, st.means.Phase()
		above := th.Row
		if st.means == Stepping {
			above = outer
		}
		i := b.row(r, Stage, above, proc, st.name, st.from, st.to, of)
		if above == th.Row {
			below, outer = append(below, uint32(i)), i
		}
	}
	th.stages, s.stages = ^int32(len(s.stages)), append(s.stages, below)
	s.Threads = append(s.Threads, th)
}

type plantedStage struct {
	name     string
	means    Meaning
	from, to int
}

func (b *planter) request(r int) {
	s, end := b.s, 500+100*b.steps(r)
	gateway := b.row(r, Gateway, None, gatewayProc, "http_request", 0, end+30, Row{Thread: None, Part: None})
	b.s.Instants = append(b.s.Instants, Instant{Time: s.Rows[gateway].Start + 60_000, Kind: HandedOn})
	b.row(r, Gateway, gateway, gatewayProc, "route", 10, 50, Row{Thread: None, Part: None})

	prefill, root := b.part(r, gateway, prefillProc, 100, 500)
	b.thread(r, prefill, root, prefillProc, []plantedStage{{"connect", SendConnecting, 110, 200}, {"wait", Queueing, 200, 220},
		{"prefill", Prefilling, 220, 400}, {"send", Sending, 410, 480}})
	decode, root := b.part(r, gateway, decodeProc, 120, end+10)
	for tp := range 2 {
		stages := []plantedStage{{"connect", ReceiveConnecting, 130, 190}, {"receive", Receiving, 195, 490}, {"decode", Answering, 500, end}}
		for step := range b.steps(r) {
			stages = append(stages, plantedStage{"step", Stepping, 500 + 100*step, 600 + 100*step})
		}
		b.thread(r, decode, root, decodeProc+tp, stages)
	}
	s.OwnThreads(func([]int) {})
	s.AddRequest(Request{RID: s.Parts[decode].RID, Gateway: gateway, GatewayID: s.NewText(fmt.Sprintf("gw-%04d", r)), Room: s.Parts[decode].Room,
		Start: s.Rows[gateway].Start, End: s.Rows[gateway].End, Metrics: Metrics{E2E: int64(1000 * (end + 30)), TTFT: int64(1000 * (1000 - r)), ITL: ITL{P99: int64(r % 7)}}}, prefill, decode)
	if b.change != nil {
		b.change(s, r, &s.Requests[r])
	}
}

// finish builds the tree of rows and the references between tables.
func (b *planter) finish() *Set {
	s := b.s
	below := make([][]uint32, len(s.Rows))
	for i, above := range b.above {
		if above != None {
			below[above] = append(below[above], uint32(i))
		}
	}
	s.Tree = Tree{Above: b.above, First: []uint32{0}}
	for _, list := range below {
		s.Tree.Below = append(s.Tree.Below, list...)
		s.Tree.First = append(s.Tree.First, uint32(len(s.Tree.Below)))
	}
	s.Stages = []StageInfo{{Name: "wait", Means: Queueing, Phase: QueuePhase}, {Name: "prefill", Means: Prefilling, Phase: PrefillPhase}, {Name: "step", Means: Stepping, Phase: DecodePhase}}
	s.Own()
	return s
}

// rids returns the ids of the requests of a set.
func rids(s *Set) (list []string) {
	for i := range s.Requests {
		list = append(list, s.Text(s.Requests[i].RID))
	}
	return list
}

// Parts, threads, and rows belong to the requests they were planted in.
func TestPlantedBelongings(t *testing.T) {
	s := planted(t, plant{requests: 3})
	for i := range s.Rows {
		if want := int(s.Rows[i].Start) / 1_000_000; s.RequestOf(i) != want {
			t.Errorf("row %d is of request %d, want %d", i, s.RequestOf(i), want)
		}
		if p := s.PartOf(i); p != None && s.ThreadOf(i) != None && s.Threads[s.ThreadOf(i)].Part != p {
			t.Errorf("row %d is of part %d, and its thread is not", i, p)
		}
	}
	if s.Len() != 3*23 {
		t.Errorf("%d rows", s.Len())
	}
	if from, to, ok := s.Bounds(); from != 0 || to != 2_830_000 || !ok {
		t.Errorf("rows are from %d to %d, %v", from, to, ok)
	}
	q := &s.Requests[1]
	if got := s.TraceID(q); got != "00000000000000000000000000000002" {
		t.Errorf("trace %s", got)
	}
	if s.RolesOf(q) != "prefill+decode" || s.ModelOf(q) != "m" || s.Server(decodeProc) != 0 {
		t.Error("roles, model or server are others")
	}
	s.Servers = []int32{0, 0, 1, 2}
	if s.Server(decodeProc1) != 2 {
		t.Error("servers are not told apart")
	}
	var depths []int
	var names []string
	for i, depth := range s.GatewayRows(q) {
		depths, names = append(depths, depth), append(names, s.Name(i))
	}
	if !slices.Equal(depths, []int{0, 1}) || !slices.Equal(names, []string{"http_request", "route"}) {
		t.Errorf("the gateway's rows are %v at %v", names, depths)
	}
	if instants := s.InstantsOf(q.Gateway); len(instants) != 1 || instants[0].Kind != HandedOn {
		t.Errorf("the gateway reports %v", instants)
	}
}

// Tokens are produced at the ends of steps on the lead rank of the answering server.
func TestTokens(t *testing.T) {
	s := planted(t, plant{requests: 4, steps: func(r int) int { return r }})
	for r := range s.Requests {
		q := &s.Requests[r]
		decode := &s.Parts[s.Answering(q)]
		if decode.Role != Decode || s.Threads[s.Lead(decode)].Proc != decodeProc || !s.OnScheduler(s.Lead(decode)) {
			t.Errorf("request %d is answered by %v, thread %d", r, decode.Role, s.Lead(decode))
		}
		var want []trace.Time
		for step := range r {
			want = append(want, trace.Time(1_000_000*r+100_000*step+600_000))
		}
		if got := s.TokenTimes(decode); !slices.Equal(got, want) {
			t.Errorf("request %d: tokens at %v, want %v", r, got, want)
		}
		if s.TokenTimes(&s.Parts[s.PartsOf(q)[0]]) != nil {
			t.Error("a prefill server gives tokens to the user")
		}
		gaps := s.Gaps(q)
		if len(gaps) != max(0, r-1) || slices.ContainsFunc(gaps, func(g int64) bool { return g != 100_000 }) {
			t.Errorf("request %d: gaps %v", r, gaps)
		}
		if row := s.LastStage(s.Lead(decode), Receiving); row == nil || row.End != trace.Time(1_000_000*r+490_000) {
			t.Errorf("request %d: the last transfer is %v", r, row)
		}
		if s.LastStage(s.Lead(decode), Encoding) != nil {
			t.Error("a stage that nobody had")
		}
	}
}

// Rows of threads come parents first, and breaking off a walk ends it.
func TestThreadRows(t *testing.T) {
	s := planted(t, plant{requests: 1})
	for th := range s.Threads {
		seen := map[int]bool{}
		for i := range s.ThreadRows(th) {
			if above := s.Tree.Parent(i); s.Rows[i].Kind == Stage && !seen[above] {
				t.Errorf("row %d comes before %d, in which it lies", i, above)
			}
			seen[i] = true
		}
		for most := range len(seen) {
			n := 0
			for range s.ThreadRows(th) {
				if n++; n > most {
					break
				}
			}
			if n != most+1 {
				t.Errorf("%d rows, want %d", n, most+1)
			}
		}
	}
}
