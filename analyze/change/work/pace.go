package work

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// A Pace is how long a lead rank takes for a piece of work of one kind, whatever there is to
// do beside it: for a token of a request, or for the prefill of a prompt.
type Pace struct {
	Rank   int32
	Pieces []Piece // by start
	// Usual is how long a piece of usual work takes, ns.
	Usual float64
	Asked []Asked
	// Whole tells that what prefills hold up is part of its pieces: servers compute both in one batch.
	Whole bool
	// Sized tells that the first burden of a piece is its own size, and not what others have there.
	Sized bool
}

// Asked is how many tokens a request asks a rank for, whether or not its pieces are looked at.
type Asked struct {
	At     trace.Time
	Tokens float64 // 0 is unknown
}

// MeanAsked is how many tokens a request asks for, of those that it is known of.
func (p *Pace) MeanAsked() float64 {
	sum, n := 0.0, 0.0
	for _, a := range p.Asked {
		if a.Tokens > 0 {
			sum, n = sum+a.Tokens, n+1
		}
	}
	return distribution.Ratio(sum, n)
}

// A Piece of work is what a rank did for a request.
type Piece struct {
	Request  int
	From, To trace.Time
	NS       float64 // of a token, or of the prefill; without the prefills of others
	Units    float64 // how many tokens
	Burden   Burden  // what makes it longer
	Ratio    float64 // to what such work takes usually
	Shared   float64 // the part of what it takes usually that is for what others have there
}

// Fewest is how many pieces of work a pace has at least.
const Fewest = 12

// Paces are those of all ranks, by what a piece is of.
type Paces struct {
	Decode, Prefill []Pace
	// Endless are when requests that never end came to a rank.
	Endless map[int32][]trace.Time
}

// NewPace compares pieces with what such work takes usually. The burdens from others on are
// what others have there.
func NewPace(rank int, list []Piece, others int) Pace {
	p := Pace{Rank: int32(rank), Pieces: list, Sized: others > 0}
	by := p.Burdens()
	sum, mean, n := 0.0, Burden{}, 0.0
	for _, x := range list {
		sum, n = sum+x.Units*x.NS, n+x.Units
		for k, v := range x.Burden {
			mean[k] += x.Units * v
		}
	}
	p.Usual = sum / n
	// What more work costs is what is beyond a part that is there anyway.
	const part = 0.05
	extra := 0.0
	for k := range by {
		extra += by[k] * mean[k] / n
	}
	if most := (1 - part) * p.Usual; extra > most {
		for k := range by {
			by[k] *= most / extra
		}
		extra = most
	}
	for i := range list {
		x := &p.Pieces[i]
		usual, shared := p.Usual-extra, 0.0
		for k, v := range x.Burden {
			if usual += by[k] * v; k >= others {
				shared += by[k] * v
			}
		}
		x.Ratio, x.Shared = x.NS/usual, shared/usual
	}
	return p
}

// Speed returns how much faster than usual a piece went. It is what averages over time: a request
// that was decoded half of the time at half the speed went at three quarters of it.
func (x *Piece) Speed() float64 { return 1 / max(x.Ratio, 1e-3) }

// Otherwise returns the part of its time that a piece of work would have taken on a server that was not
// slower by a factor, 1 or less of what it is. As many requests come, so the less each takes, the
// fewer are there at a time (Little's law), and that makes all of them faster once more.
func (x *Piece) Otherwise(speed float64) float64 {
	if speed <= 0 || speed > 1 {
		return speed
	}
	return speed * (1 - x.Shared) / (1 - x.Shared*speed)
}

// Extra returns by how much longer a piece of work took than such work usually does, ns.
func (x *Piece) Extra() float64 { return x.Units * x.NS * (1 - 1/x.Ratio) }

// SlowerIn returns by which part of their speed some pieces are slower than the others, in the middle; 0 if chance explains it.
func (p *Pace) SlowerIn(some func(*Piece) bool) float64 {
	const surely = 0.001
	var usual, then []float64
	for i := range p.Pieces {
		if x := &p.Pieces[i]; some(x) {
			then = append(then, x.Ratio)
		} else {
			usual = append(usual, x.Ratio)
		}
	}
	if len(then) == 0 || len(usual) == 0 {
		return 0
	}
	if chance, _ := changepoint.Compare(usual, then); chance > surely {
		return 0
	}
	return max(0, 1-distribution.Ratio(distribution.LowerMedian(usual), distribution.LowerMedian(then)))
}

// likelier returns p, unless other describes what pieces take with clearly less scatter. Servers compute prompts in
// batches, and decode nothing meanwhile; those that do not are seen by that.
func likelier(p, other Pace) Pace {
	const clearly = 0.9
	if other.scatter() < clearly*p.scatter() {
		return other
	}
	return p
}

// scatter is the variance of what pieces take, in comparison to what such work takes usually, between pieces
// at about the same time.
func (p *Pace) scatter() float64 {
	sum, n := 0.0, 0.0
	for i := 1; i < len(p.Pieces); i++ {
		x, y := &p.Pieces[i-1], &p.Pieces[i]
		units := min(x.Units, y.Units)
		sum, n = sum+units*(x.Ratio-y.Ratio)*(x.Ratio-y.Ratio), n+units
	}
	return sum / max(1, n)
}
