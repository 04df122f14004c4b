package critical

import (
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Piece is one thing that a request waits for, from when to when.
type Piece struct {
	Part       // of this piece alone
	Until      trace.Time
	Stage      int // row of the set that ends it, on the rank that is waited for; request.None
	What, Rank string
}

// A Chain is the critical path of a request, piece by piece.
type Chain struct {
	Index  int // into Set.Requests
	Pieces []Piece
}

// maxPieces is how many pieces a chain has at most: of long answers, neighbors that are waited for
// for the same reason become one.
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

// inSteps puts what steps consist of together: late ranks are in decode steps.
func inSteps(why replay.WaitReason) replay.WaitReason {
	if why == replay.LateRank {
		return replay.Decoding
	}
	return why
}

// maxChains is how many requests are drawn.
const maxChains = 10

// Slowest returns the chains of the slowest requests that have one. Hosts may be nil.
func Slowest(r *replay.Run, hosts *Hosts) (list []Chain) {
	all := r.Whole()
	for _, q := range all[:min(maxChains, len(all))] {
		list = append(list, *ChainOf(r, hosts, r.Requests[q].Index))
	}
	return list
}
