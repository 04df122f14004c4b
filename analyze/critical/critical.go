package critical

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Part is one thing that requests waited for.
type Part struct {
	Why      replay.WaitReason
	At       string // the rank that was waited for; "" if none
	From     string // the rank that sent it a KV cache; "" if none
	Other    string // ID of the request with the most tokens in the batch that was waited for; "" for the request itself
	Host     string // what the host of a late rank was in, from profiles; "" if unknown
	Tokens   int64  // the most tokens of Other in such a batch
	Ns       int64
	Pieces   int
	Requests int
	First    trace.Time // when the first piece began
}

// key identifies a part.
type key struct {
	why         replay.WaitReason
	place, from int
	other       int
	activity    string
}

// A sum adds up segments into parts.
type sum struct {
	run   *replay.Run
	hosts *Hosts
	index map[key]int
	list  []Part
	last  []int // by part: the request that was counted last
}

// add adds the path of a request. If names is set, each request that was waited for makes a part of its own.
func (s *sum) add(q int, names bool) {
	at := s.run.Requests[q].Arrival
	for _, x := range s.hosts.path(s.run, q) {
		k := key{x.Why, x.Place, x.From, replay.None, x.activity}
		if names {
			k.other = x.Other
		}
		i, ok := s.index[k]
		if !ok {
			i = len(s.list)
			s.index[k] = i
			p := Part{Why: x.Why, At: s.run.PlaceName(x.Place), From: s.run.PlaceName(x.From), Host: x.activity, First: at}
			if names {
				p.Other = s.run.RID(x.Other)
			}
			s.list, s.last = append(s.list, p), append(s.last, replay.None)
		}
		p := &s.list[i]
		p.Ns += int64(x.Until - at)
		p.Pieces++
		p.Tokens = max(p.Tokens, x.Tokens)
		if s.last[i] != q {
			s.last[i] = q
			p.Requests++
		}
		at = x.Until
	}
}

// A Path is the critical path of one request, by part.
type Path struct {
	E2E   int64  // ns; the parts add up to it
	Parts []Part // ordered by their beginning
	hosts *Hosts
}

// PathOf returns the path of a request, by its index in the set; nil if the dump lacks some of it. Hosts may be nil.
func PathOf(r *replay.Run, hosts *Hosts, index int) *Path {
	q := r.Find(index)
	if q == replay.None {
		return nil
	}
	s := sum{run: r, hosts: hosts, index: map[key]int{}}
	s.add(q, true)
	return &Path{E2E: r.E2E(q), Parts: s.list, hosts: hosts}
}

// A Summary is what the slow requests waited for.
type Summary struct {
	Requests, All int    // number of slow requests, out of all with a path
	Untraced      int    // of Requests: those without decode steps in the dump
	Ns            int64  // their total E2E
	Parts         []Part // the longest first
	Missing       string // why there is no summary; "" if there is one
	hosts         *Hosts
}

// slowOneIn: the slowest 1/slowOneIn of the requests are the slow ones.
const slowOneIn = 10

// SumSlow sums up what the slowest tenth of the requests waited for. Hosts may be nil.
func SumSlow(r *replay.Run, hosts *Hosts) *Summary {
	list := r.Whole()
	out := &Summary{All: len(list), hosts: hosts}
	if len(list) == 0 {
		out.Missing = "no finished request has all of its spans, with the ranks that served it"
		if r.Missing.Bare {
			out.Missing = "the servers traced only whole requests, no stages: what they waited for is unknown"
		}
		return out
	}
	list = list[:max(1, len(list)/slowOneIn)]
	out.Requests = len(list)
	s := sum{run: r, hosts: hosts, index: map[key]int{}}
	for _, q := range list {
		s.add(q, false)
		if r.Untraced(q) {
			out.Untraced++
		}
		out.Ns += r.E2E(q)
	}
	slices.SortStableFunc(s.list, func(a, b Part) int { return cmp.Compare(b.Ns, a.Ns) })
	out.Parts = s.list
	return out
}

// texts describe a part for people.
var texts = map[replay.WaitReason]string{
	replay.Dispatching:  "gateway and tokenizer",
	replay.Booking:      "KV cache on the decode server",
	replay.Queueing:     "steps of others in the queue",
	replay.Prefilling:   "own prefill, and those that share its batch",
	replay.Transferring: "KV transfer to the server",
	replay.Joining:      "running step, before it joins",
	replay.Decoding:     "own decode steps",
	replay.HeldUp:       "prefills of others between its steps",
	replay.LateRank:     "rank that ends its steps last",
	replay.Collective:   "collectives in which the rank comes last",
	replay.Returning:    "way back to the user",
}

// where names the rank, or the pair of ranks, that is waited for.
func (p *Part) where() string {
	if p.From != "" {
		return p.From + " → " + p.At
	}
	return p.At
}

// fields returns the columns of parts; total is the E2E that shares refer to.
func fields(total int64, names bool) []table.Field[Part] {
	list := []table.Field[Part]{
		table.TextColumn("waits for", "what the requests wait for", func(p *Part) string { return p.Why.String() }),
		table.TextColumn("rank", "rank that computes the steps or is late; target of the dispatch; or both ends of the KV transfer", (*Part).where),
		table.NsColumn("time", "total time", func(p *Part) int64 { return p.Ns }),
		table.PartColumn("share", "share of the E2E of these requests", func(p *Part) (int64, int64) { return p.Ns, total }),
		table.CountColumn("pieces", "number of separate waits", func(p *Part) int64 { return int64(p.Pieces) }),
		table.CountColumn("requests", "number of requests that wait for it", func(p *Part) int64 { return int64(p.Requests) }),
		table.TextColumn("what", "the wait, in words", func(p *Part) string { return texts[p.Why] }),
		table.TextColumn("host", "for a late rank with profiles: what its host was doing while its device waited for it", func(p *Part) string { return p.Host }),
	}
	if names {
		list = append(list, table.TextColumn("behind", "request with the most tokens in the batch that this request waits for", func(p *Part) string { return p.Other }),
			table.CountColumn("tokens", "tokens of that request in the batch", func(p *Part) int64 {
				if p.Other == "" {
					return request.Unknown
				}
				return p.Tokens
			}))
	}
	return list
}

// Report returns a table of what the slow requests waited for.
func (s *Summary) Report() *table.Table {
	t := table.New("sgtrace.report.critical/v1", "What the slow requests waited for", s.Parts, fields(s.Ns, false)).Stay("share").Leave("pieces", "what")
	if s.Missing != "" {
		t.Note("%s", s.Missing)
		return t
	}
	t.Note("the slowest %s of %d; the parts add up to their E2E", words.Counted(s.Requests, "request"), s.All)
	if s.Untraced > 0 {
		t.Note("the dump has no decode steps of %s: what these waited for between them is not known; trace level 3 records them", words.Counted(s.Untraced, "request"))
	}
	if why := s.hosts.missing(s.Parts); why != "" {
		t.Note("%s", why)
	}
	return t
}

// Report returns a table of what one request waited for.
func (p *Path) Report() *table.Table {
	t := table.New("sgtrace.report.critical.request/v1", "Critical path", p.Parts, fields(p.E2E, true)).Stay("share").Leave("pieces", "requests", "what")
	if why := p.hosts.missing(p.Parts); why != "" {
		t.Note("%s", why)
	}
	return t
}

// A Piece is one thing that a request waits for, with its beginning and its end.
type Piece struct {
	Part       // this piece alone
	Until      trace.Time
	Stage      int // row of the set that ends it, on the rank that is waited for, or request.None
	What, Rank string
}

// A Chain is the critical path of a request, piece by piece.
type Chain struct {
	Index  int // index into Set.Requests
	Pieces []Piece
}

// maxPieces is about how many pieces a chain may have: in longer ones, successive steps are merged if waited for for the same reason.
const maxPieces = 2000

// ChainOf returns the chain of a request, by its index in the set; nil if it has none. Hosts may be nil.
func ChainOf(r *replay.Run, hosts *Hosts, index int) *Chain {
	q := r.Find(index)
	if q == replay.None {
		return nil
	}
	path := hosts.path(r, q)
	at := r.Requests[q].Arrival
	c := &Chain{Index: index}
	for i := range path {
		x := &path[i]
		if n := len(c.Pieces); n > 0 && len(path) > maxPieces && c.Pieces[n-1].Why == inSteps(x.Why) && x.Other == replay.None && c.Pieces[n-1].Other == "" {
			last := &c.Pieces[n-1]
			last.Until, last.Ns, last.Pieces, last.Stage = x.Until, last.Ns+int64(x.Until-at), last.Pieces+1, request.None
			at = x.Until
			continue
		}
		p := Piece{Part: Part{Why: x.Why, At: r.PlaceName(x.Place), From: r.PlaceName(x.From), Other: r.RID(x.Other), Host: x.activity, Tokens: x.Tokens, Ns: int64(x.Until - at), Pieces: 1, Requests: 1, First: at},
			Until: x.Until, Stage: r.Stage(q, &x.Segment), What: texts[x.Why]}
		if len(path) > maxPieces {
			p.Why = inSteps(x.Why)
		}
		p.Rank = p.where()
		c.Pieces = append(c.Pieces, p)
		at = x.Until
	}
	return c
}

// inSteps treats waits for late ranks as decode steps, which contain them.
func inSteps(why replay.WaitReason) replay.WaitReason {
	if why == replay.LateRank {
		return replay.Decoding
	}
	return why
}

// maxChains is the number of requests that are drawn.
const maxChains = 10

// Slowest returns the chains of the slowest requests that have one. Hosts may be nil.
func Slowest(r *replay.Run, hosts *Hosts) (list []Chain) {
	all := r.Whole()
	for _, q := range all[:min(maxChains, len(all))] {
		list = append(list, *ChainOf(r, hosts, r.Requests[q].Index))
	}
	return list
}
