package analyze

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Straggler is a rank that the others of its group wait for, meeting after
// meeting: at the end of steps, or in collectives.
type Straggler struct {
	Rank  int    // in the group
	Name  string // of the rank: "TP2"
	Group string // of the ranks that wait for it: "decode c94b1e02 DP1", "4 ranks"
	Peers string // those ranks without it, if they are few and have no name together
	What  string // what they do together: "decode steps"
	Verb  string // what a rank does there: "ends", "arrives"
	Where Where  // the rank; the zero value if it is none of a request.Set

	// Lateness is of the time in which the rank is slow.
	Lateness
	// Since is when it became slow, and Earliest and Latest bound that with a
	// confidence of 95 %; zero if it always was. Until is when it was over; zero if it
	// is not.
	Since, Earliest, Latest, Until trace.Time
	// Delay is how late it is on average, as part of the time of the meetings: the mean
	// over Blocks pieces of the time, compared with the median of the others in each.
	// DelayLow and DelayHigh are its 95 % confidence interval, NaN where P is.
	Delay, DelayLow, DelayHigh float64
	// LateBlocks is in how many of the Blocks it was late by what matters.
	Blocks, LateBlocks int
	took               float64 // by a meeting, mean, ns
	// P bounds the probability that any of the ranks looks that slow if all are
	// alike. It is NaN where lateness goes up and down so slowly that nothing can be
	// computed; then it was late in all blocks.
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
	if s.Peers != "" {
		text = fmt.Sprintf("%s %s last in %d of %d %s with %s", s.Name, s.Verb, s.Last, s.Meetings, s.What, s.Peers)
	}
	if s.Since != 0 {
		text += " since " + words.When(s.Since, s.Earliest, s.Latest)
	}
	if s.Until != 0 {
		text += " until " + words.Clock(s.Until).Format("15:04:05")
	}
	text += fmt.Sprintf(", %s late", words.Nearly(s.LastMean))
	if !math.IsNaN(s.LostShare) {
		text += fmt.Sprintf("; the others lose %s %% of their time", words.InPercent(s.LostShare))
	}
	if s.Cause != "" {
		text += "; " + s.Cause
	}
	return text
}

// doubt is the sentence about how certain a straggler is.
func (s *Straggler) doubt() string { return "it is " + s.sure("late") }

// sure says by which part of the time a straggler is late, or longer, as word has it,
// and how certain that is.
func (s *Straggler) sure(word string) string {
	text := fmt.Sprintf("%s by %.1f %% of the time, the mean of %d pieces", word, 100*s.Delay, s.Blocks)
	if math.IsNaN(s.P) {
		return fmt.Sprintf("%s, and in each of them by what matters", text)
	}
	return fmt.Sprintf("%s (95 %% confidence: %.1f to %.1f %%); if all ranks were alike, one would look so with %s",
		text, 100*s.DelayLow, 100*s.DelayHigh, words.Chance(s.P))
}

// delayNs is a part of the time of a meeting in ns; unknown stays so.
func (s *Straggler) delayNs(part float64) int64 {
	if math.IsNaN(part) {
		return request.Unknown
	}
	return int64(math.Round(part * s.took))
}
