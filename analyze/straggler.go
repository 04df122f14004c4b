package analyze

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// A Straggler is a rank that the others of its group wait for, meeting after
// meeting: at the end of steps, or in collectives.
type Straggler struct {
	Rank  int    // in the group
	Name  string // of the rank: "TP2"
	Group string // of the ranks that wait for it: "decode c94b1e02 DP1"
	What  string // what they do together: "decode steps"
	Verb  string // what a rank does there: "ends", "arrives"
	Where Where  // the rank; the zero value if it is none of a request.Set

	// Lateness is of the time in which the rank is slow.
	Lateness
	// Since is when it became slow, and Earliest and Latest bound that with a
	// confidence of 95 %; zero if it always was. Until is when it was over; zero if it
	// is not.
	Since, Earliest, Latest, Until trace.Time
	// Low and High are the 95 % confidence interval of Mean, in ns.
	Low, High int64
	// P bounds the probability that any of the ranks looks that slow if all are
	// alike.
	P float64
	// Part is the part of the meetings that is in the time in which it is slow.
	Part float64
	// Cause says why, as far as that is known.
	Cause    string
	Evidence []string // sentences
}

// Lateness sums up when a rank arrived where it meets others.
type Lateness struct {
	Meetings int // at which the rank was
	Last     int // at which it arrived after all others
	// P50, P99 and Mean are of its arrival minus the median (nearest rank) of those
	// of the others, in ns; negative where it was early.
	P50, P99, Mean int64
	// LastMean is the mean where it was last, in ns; 0 if it never was.
	LastMean int64
	// Lost is how long the others waited for it together, in ns: summed up over them
	// and the meetings at which it was last.
	Lost int64
	// LostShare is Lost as part of the time of the others; NaN if that is unknown.
	LostShare float64
}

// Text says in a sentence which rank is late, how often, by how much and what that
// costs.
func (s *Straggler) Text() string {
	text := fmt.Sprintf("%s of %s %s last in %d of %d %s", s.Name, s.Group, s.Verb, s.Last, s.Meetings, s.What)
	if s.Since != 0 {
		text += " since " + when(s.Since, s.Earliest, s.Latest)
	}
	if s.Until != 0 {
		text += " until " + clock(s.Until).Format("15:04:05")
	}
	text += fmt.Sprintf(", %s late", nearly(s.LastMean))
	if !math.IsNaN(s.LostShare) {
		text += fmt.Sprintf("; the others lose %s %% of their time", inPercent(s.LostShare))
	}
	if s.Cause != "" {
		text += "; " + s.Cause
	}
	return text
}

// doubt is the sentence about how certain a straggler is.
func (s *Straggler) doubt() string {
	return fmt.Sprintf("it is %s to %s late on average (95 %% confidence); if all ranks were alike, one would look so with %s",
		nearly(s.Low), nearly(s.High), chance(s.P))
}
