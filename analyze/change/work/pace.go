package work

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// A Pace is how long a lead rank takes for one kind of work, a token of a request or the
// prefill of a prompt, corrected for everything else that it does meanwhile.
type Pace struct {
	Rank   int32
	Pieces []Piece // ordered by start
	// Usual is the mean time per unit of work, in ns.
	Usual float64
	Asked []Asked
	// Whole reports that pieces include the time that prefills hold them up: the server computes both in one batch.
	Whole bool
	// Sized reports that a piece's first burden is its own size, and not the load of other requests.
	Sized bool
}

// Asked is how many tokens a request asks a rank for, whether or not its pieces are compared.
type Asked struct {
	At     trace.Time
	Tokens float64 // 0 is unknown
}

// MeanAsked returns how many tokens a request asks for on average, over requests for which that is known.
func (p *Pace) MeanAsked() float64 {
	sum, n := 0.0, 0.0
	for _, a := range p.Asked {
		if a.Tokens > 0 {
			sum, n = sum+a.Tokens, n+1
		}
	}
	return distribution.Ratio(sum, n)
}

// A Piece of work is what a rank did for a request, or for a batch of prefills.
type Piece struct {
	Request  int
	From, To trace.Time
	NS       float64 // per token, or of the prefill; without the prefills of others unless Whole
	Units    float64 // tokens or decode steps; 1 for a prefill
	Burden   Burden  // what makes it longer
	Ratio    float64 // of NS to what such work usually takes
	Shared   float64 // fraction of the usual time that is due to the load of other requests
	Batch    float64 // how many requests are in its decode steps, according to the scheduler; 0 is unknown
}

// Fewest is the minimum number of pieces in a pace.
const Fewest = 12

// Paces are the paces of all ranks, by kind of work.
type Paces struct {
	Decode, Prefill []Pace
	// Endless holds, by rank, the arrivals of requests that never end.
	Endless map[int32][]trace.Time
}

// NewPace compares pieces with what such work usually takes. The burdens from index others on are the load of other requests.
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
	// At least this fraction of the usual time is a fixed cost, whatever the burdens.
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

// Mean returns the mean of a quantity over units of work.
func (p *Pace) Mean(of func(*Piece) float64) float64 {
	sum, n := 0.0, 0.0
	for i := range p.Pieces {
		x := &p.Pieces[i]
		sum, n = sum+x.Units*of(x), n+x.Units
	}
	return distribution.Ratio(sum, n)
}

// Explains returns how much of the variance of Ratio a quantity explains that makes work longer in proportion.
func (p *Pace) Explains(by func(*Piece) float64) float64 {
	mean, ratio := p.Mean(by), p.Mean(func(x *Piece) float64 { return x.Ratio })
	together := p.Mean(func(x *Piece) float64 { return (by(x) - mean) * (x.Ratio - ratio) })
	alone := p.Mean(func(x *Piece) float64 { return (by(x) - mean) * (by(x) - mean) })
	return distribution.Ratio(max(0, together)*together, alone)
}

// Speed returns how fast a piece went, as a multiple of the usual speed. Speeds average over time: a request decoded at
// half speed for half of the time went at three quarters of it.
func (x *Piece) Speed() float64 { return 1 / max(x.Ratio, 1e-3) }

// Otherwise returns the fraction of its time that a piece would have taken if its server had not slowed down to speed,
// a fraction of its former speed. Requests arrive at the same rate, so if each takes less, fewer are there at a time
// (Little's law), and the shared part of each shrinks once more. If speed is not in (0, 1], it is returned as it is.
func (x *Piece) Otherwise(speed float64) float64 {
	if speed <= 0 || speed > 1 {
		return speed
	}
	return speed * (1 - x.Shared) / (1 - x.Shared*speed)
}

// Extra returns how much longer than usual a piece of work took, in ns.
func (x *Piece) Extra() float64 { return x.Units * x.NS * (1 - 1/x.Ratio) }

// SlowerIn returns the fraction by which the median speed of some pieces is below that of the others; 0 if chance explains it.
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

// likelier returns p, unless other describes the times of the pieces with clearly less scatter. That shows whether a
// server computes prompts in batches of their own, and decodes nothing meanwhile, or mixes both.
func likelier(p, other Pace) Pace {
	const clearly = 0.9
	if other.scatter() < clearly*p.scatter() {
		return other
	}
	return p
}

// scatter returns the mean squared difference of Ratio between successive pieces, which are at about the same time.
func (p *Pace) scatter() float64 {
	sum, n := 0.0, 0.0
	for i := 1; i < len(p.Pieces); i++ {
		x, y := &p.Pieces[i-1], &p.Pieces[i]
		units := min(x.Units, y.Units)
		sum, n = sum+units*(x.Ratio-y.Ratio)*(x.Ratio-y.Ratio), n+units
	}
	return sum / max(1, n)
}

// apart returns the median distance of Ratio between successive pieces. Unlike scatter, it does not depend on the few that a
// change or a stall lies between.
func (p *Pace) apart() float64 {
	list := memory.Make[float64](max(0, len(p.Pieces)-1))
	for i := range list {
		list[i] = math.Abs(p.Pieces[i].Ratio - p.Pieces[i+1].Ratio)
	}
	return distribution.LowerMedian(list)
}
