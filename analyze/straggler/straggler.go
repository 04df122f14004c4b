package straggler

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Straggler is a rank that the others of its group keep waiting for at sync points: the ends of steps, or
// collectives.
type Straggler struct {
	Rank     int            // index in the group
	Name     string         // of the rank: "decode DP1 TP2"
	Group    string         // the ranks that wait for it: "decode DP1", "4 ranks"
	Peers    string         // the group without it, if it is small and has no name
	What     string         // what they do together: "decode steps"
	Verb     string         // what a rank does there: "ends", "arrives"
	Location place.Location // of the rank; the zero value if it is not in a request.Set

	// Lateness covers the time in which the rank is slow, and Bulk what the others lose then.
	Lateness
	Bulk Bulk
	// Since is when it became slow, with its 95 % bounds Earliest and Latest; zero if it always was. Until is when
	// that ended; zero if it did not.
	Since, Earliest, Latest, Until trace.Time
	// Undated says that the times of sync points are unknown.
	Undated bool
	// Delay is its mean lateness as a fraction of the time of sync points: the mean over Blocks blocks of time,
	// compared with the median of the others in each. DelayLow and DelayHigh are its 95 % confidence interval, NaN if
	// P is.
	Delay, DelayLow, DelayHigh float64
	// LateBlocks is the number of Blocks in which it was late by enough to matter.
	Blocks, LateBlocks int
	took               float64 // ns: mean duration of a sync point
	// P bounds the probability that any rank looks that slow if all are alike. It is NaN if lateness rises and falls
	// so slowly that it cannot be computed; then the rank was late in all blocks.
	P float64
	// Counted says that P is based on how often it came last, because there are too few sync points for blocks of
	// time; then Blocks is 0.
	Counted bool
	// Slack says that the others may have had as much time to spare as it is late.
	Slack bool
	// Part is the share of sync points in the period in which it is slow.
	Part float64
	// Intermittent is set if it is late in some of its steps only, and says when.
	Intermittent *Intermittent
	// Cause says why, if known.
	Cause    string
	Evidence []finding.Evidence
}

// Lateness sums up the arrivals of a rank at sync points.
type Lateness struct {
	SyncPoints int // at which the rank was present
	Last       int // at which it arrived after all others
	// P50, P99 and Mean are of its arrival minus the median (nearest rank) of the others' arrivals, in ns; negative
	// if it was early.
	P50, P99, Mean int64
	// LastMean is the mean over the sync points at which it was last, in ns; 0 if there are none.
	LastMean int64
	// Lost is how long the others waited for it, in ns: the sum over them, and over the sync points at which it was
	// last.
	Lost int64
	// LostShare is Lost as a share of the others' time; NaN if that is unknown.
	LostShare float64
}

// Arrives is the verb for ranks that meet in the middle of their work.
const Arrives = "arrives"

// Text says in a sentence which rank is late, how often, by how much, and what that costs.
func (s *Straggler) Text() string {
	text := fmt.Sprintf("%s %s last in %s of %s %s", s.Name, s.Verb, words.Thousands(int64(s.Last)), words.Thousands(int64(s.SyncPoints)), s.What)
	if o := s.Intermittent; o != nil {
		text = fmt.Sprintf("%s is late in %s of %s %s", s.Name, words.Thousands(int64(o.Steps)), words.Thousands(int64(s.SyncPoints)), s.What)
	}
	if s.Peers != "" {
		text += " with " + s.Peers
	} else {
		text += " of " + s.Group
	}
	if s.Since != 0 {
		text += " since " + words.When(s.Since, s.Earliest, s.Latest)
	}
	if s.Until != 0 {
		text += " until " + s.UntilText()
	}
	if o := s.Intermittent; o != nil {
		text += fmt.Sprintf(" (%s %%), by %s to %s, %s", words.InPercent(o.Share), words.Nearly(o.Low), words.Nearly(o.High), o.When.String())
	} else {
		text += fmt.Sprintf(", %s late on average", words.Nearly(s.LastMean))
	}
	if !math.IsNaN(s.LostShare) {
		text += fmt.Sprintf("; the other ranks lose %s %% of %s", words.InPercent(s.LostShare), s.whole())
		if s.Intermittent == nil && s.Verb == Arrives && !s.Undated {
			text += s.Bulk.Of(s.Lost, "one of them", "of them")
		}
	}
	if s.Cause != "" {
		text += "; " + s.Cause
	}
	return text
}

// whole names the time that LostShare is a share of. Devices also wait for other things.
func (s *Straggler) whole() string {
	switch {
	case s.Undated:
		return "their time in " + s.What
	case s.Verb == Arrives:
		return "the time between " + s.What
	}
	return "their time"
}

// UntilText returns when it ended, to the millisecond if it lasted for less than a minute, as far as known.
func (s *Straggler) UntilText() string {
	lasted := s.took * float64(s.SyncPoints)
	if s.Since != 0 {
		lasted = float64(s.Until - s.Since)
	}
	if lasted > 0 && lasted < float64(time.Minute) {
		return words.At(s.Until, words.ClockLayout)
	}
	return words.At(s.Until, "15:04:05")
}

// Confidence returns the evidence of how certain a straggler is and, if it is intermittent, of how often it is late.
func (s *Straggler) Confidence() []finding.Evidence {
	row := finding.Row("rank", s.Name, "at", s.What)
	list := []finding.Evidence{finding.Sentence("it is late by %s", s.Sure()).In("stragglers", row, "late_share", s.Delay)}
	if o := s.Intermittent; o != nil {
		list = append(list, finding.Sentence("it is late in %s %% of its steps more than the other ranks are", words.InPercent(o.Share)).In("stragglers", row, "late_steps_share", o.Share))
	}
	return list
}

// LikelyText returns the sentence about a rank that is likely, but not certainly, a straggler.
func (s *Straggler) LikelyText() string {
	certain := fmt.Sprintf("only p <= %v is certain", ErrorLevel)
	if s.Counted {
		certain = fmt.Sprintf("%d %s are too few to be certain", s.SyncPoints, s.What)
	}
	return fmt.Sprintf("likely, not certain: %s; %s if all ranks were equally fast, and %s", s.Text(), words.Chance(s.P), certain)
}

// Sure says by what fraction of the time a straggler is late, and how certain that is.
func (s *Straggler) Sure() string {
	text := fmt.Sprintf("%.1f %% of the time on average", 100*s.Delay)
	if s.Counted {
		return fmt.Sprintf("%s; %s that any rank comes last this often if all were equally fast", text, words.Chance(s.P))
	}
	if math.IsNaN(s.P) {
		return fmt.Sprintf("%s, and by enough to matter in each of %d blocks of time", text, s.Blocks)
	}
	return fmt.Sprintf("%s (95 %% confidence interval: %.1f to %.1f %%, %d blocks of time); %s if all ranks were equally fast",
		text, 100*s.DelayLow, 100*s.DelayHigh, s.Blocks, words.Chance(s.P))
}

// Finding returns the finding about the straggler.
func (s *Straggler) Finding(cost float64) finding.Finding {
	f := finding.Finding{
		At: s.Location, Since: s.Since, Until: s.Until, Text: s.Text(), Evidence: s.Evidence, Cost: cost, P: finding.Chance(s.P),
		Metric: finding.Metric{Name: "lateness in " + s.What, Unit: table.Duration, Before: math.NaN(), After: float64(s.LastMean)},
	}
	if s.Earliest != 0 {
		f.Within = max(s.Since-s.Earliest, s.Latest-s.Since)
	}
	if s.LostShare > 0 {
		f.Lost = s.LostShare
	}
	if o := s.Intermittent; o != nil {
		f.Metric.Name, f.Metric.After = "lateness in some "+s.What, float64(o.High)
	}
	if s.Counted || s.Slack {
		f.Confidence = finding.Likely // however small P is: see LikelyOfFew
	}
	return f
}

// delayNs converts a fraction of the time of a sync point to ns; NaN becomes request.Unknown.
func (s *Straggler) delayNs(part float64) int64 {
	if math.IsNaN(part) {
		return request.Unknown
	}
	return int64(math.Round(part * s.took))
}

// A Verdict says which ranks keep others waiting, by all evidence: the ends of steps in requests, and collectives in
// profiles.
type Verdict struct {
	Stragglers []Straggler
	// Sentences are one for each straggler, or for each kind of evidence that shows none, with what it looked at.
	Sentences []string
}

// Suspects are the stragglers that one kind of evidence shows, the costliest first.
type Suspects struct {
	Stragglers []Straggler
	// Acquittal says, if there are no stragglers, what was looked at.
	Acquittal []string
}

// Find combines what several kinds of evidence show. The first kind is reported first.
func Find(suspects ...Suspects) Verdict {
	var v Verdict
	var acquitted []string
	for _, s := range suspects {
		if v.Stragglers = append(v.Stragglers, s.Stragglers...); len(s.Stragglers) == 0 {
			acquitted = append(acquitted, s.Acquittal...)
			continue
		}
		for i := range s.Stragglers {
			v.Sentences = append(v.Sentences, s.Stragglers[i].Text())
		}
	}
	v.Sentences = append(v.Sentences, acquitted...)
	return v
}

// Report makes the table of the stragglers. Its title is the verdict.
func (v Verdict) Report() *table.Table {
	title := "No straggler can be told: no ranks do the same things together"
	if len(v.Sentences) > 0 {
		title = words.Capitalized(v.Sentences[0])
		if len(v.Stragglers) > 0 {
			title = "Straggler: " + v.Sentences[0]
		}
	}
	type S = Straggler
	since := table.Column{Name: "since", Unit: table.Instant, Doc: "when it became late; empty if it always was"}
	fields := []table.Field[S]{
		table.TextColumn("rank", "rank that others wait for", func(s *S) string { return s.Name }),
		table.TextColumn("of", "ranks that wait for it", func(s *S) string { return cmp.Or(s.Peers, s.Group) }),
		table.TextColumn("at", "what they wait in: steps or collectives", func(s *S) string { return s.What }),
		table.CountColumn("n", "number of steps or collectives that it took part in while it was slow", func(s *S) int64 { return int64(s.SyncPoints) }),
		table.CountColumn("last", "how many of them it reached last", func(s *S) int64 { return int64(s.Last) }),
		table.NsColumn("late", "mean lateness where it was last: its arrival minus the median arrival of the others", func(s *S) int64 { return s.LastMean }),
		table.NsColumn("late p50", "median lateness over all n, nearest rank", func(s *S) int64 { return s.P50 }),
		table.NsColumn("late p99", "99th percentile of lateness over all n, nearest rank", func(s *S) int64 { return s.P99 }),
		table.NsColumn("lost", "total time that the others waited for it", func(s *S) int64 { return s.Lost }),
		{Column: table.Column{Name: "lost share", Unit: table.Share, Doc: "lost, as a share of the time of their steps or between their collectives"}, Cell: func(s *S) table.Cell { return table.Cell{Share: s.LostShare, Unknown: math.IsNaN(s.LostShare)} }},
		{Column: since, Cell: func(s *S) table.Cell { c := table.InstantCell(s.Since); c.Unknown = s.Since == 0; return c }},
	}
	fields = append(fields, table.Detail([]table.Field[S]{
		table.NsColumn("at least", "lower bound of the mean lateness: `at_least_share` times the mean time of a step or between collectives", func(s *S) int64 { return s.delayNs(s.DelayLow) }),
		table.NsColumn("at most", "upper bound of the mean lateness: `at_most_share` times the same", func(s *S) int64 { return s.delayNs(s.DelayHigh) }),
		table.NumberColumn("p", "upper bound of the probability that any rank looks this slow if all are equally fast; empty if it was reported for being late in every block of time instead", func(s *S) float64 { return s.P }),
		table.TextColumn("cause", "cause, as far as device activity shows it", func(s *S) string { return s.Cause }),
		table.ShareColumn("late share", "mean lateness as a share of the time of a step or between collectives", func(s *S) float64 { return s.Delay }),
		table.ShareColumn("at least share", "lower bound of late_share's 95 % confidence interval; empty if p is", func(s *S) float64 { return s.DelayLow }),
		table.ShareColumn("at most share", "upper bound of that interval", func(s *S) float64 { return s.DelayHigh }),
		table.CountColumn("pieces", "number of blocks of time judged while it was slow", func(s *S) int64 { return int64(s.Blocks) }),
		table.CountColumn("late pieces", "how many of pieces it was late in by enough to matter", func(s *S) int64 { return int64(s.LateBlocks) }),
	})...)
	fields = append(fields, occasionColumns()...)
	r := table.New("sgtrace.report.stragglers/v1", title, v.Stragglers, fields)
	r.Stay("late", "lost share").Leave("n", "late p50", "late p99", "lost")
	for _, sentence := range v.Sentences[min(1, len(v.Sentences)):] {
		r.Note("%s", sentence)
	}
	if len(v.Stragglers) == 0 {
		r.Note("'sgtrace help metrics straggler' defines stragglers")
	}
	for i := range v.Stragglers {
		s := &v.Stragglers[i]
		r.Note("%s: %s", s.Name, strings.Join(finding.Sentences(s.Evidence), "; "))
	}
	return r
}

// occasionColumns describe the lateness of intermittent stragglers; they are empty for others.
func occasionColumns() []table.Field[Straggler] {
	type S = Straggler
	fields := table.Detail([]table.Field[S]{
		table.CountColumn("late steps", "for a rank that is late in only some steps: number of late steps beyond the average of the other ranks; otherwise empty", func(s *S) int64 { return int64(s.Intermittent.Steps) }),
		table.ShareColumn("late steps share", "late_steps as a share of its steps", func(s *S) float64 { return s.Intermittent.Share }),
		table.NsColumn("late from", "10th percentile of its lateness in late steps, nearest rank", func(s *S) int64 { return s.Intermittent.Low }),
		table.NsColumn("late to", "90th percentile of its lateness in late steps", func(s *S) int64 { return s.Intermittent.High }),
		table.TextColumn("late when", "what the late steps have in common", func(s *S) string { return s.Intermittent.When.String() }),
	})
	for i := range fields {
		known := fields[i].Cell
		fields[i].Cell = func(s *S) table.Cell {
			if s.Intermittent == nil {
				return table.Cell{Unknown: true}
			}
			return known(s)
		}
	}
	return fields
}
