package change

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// Write writes the changes as text: for each, what happened first, and when, and below it what changed with it.
func (c *Changes) Write(out io.Writer, style table.Style) error {
	p := &changesPrinter{Changes: c, out: bufio.NewWriter(out), style: style}
	p.header()
	for i := range c.List {
		p.change(i + 1)
	}
	p.list("always, and not a change", c.Late, func(f *Shift) string {
		_, after := f.values()
		return "p50 " + after
	})
	p.list("not changes, but the ramp-up or the drain", c.Edges, func(f *Shift) string {
		return fmt.Sprintf("%s at %s", f.change(), words.When(f.Time, f.First, f.Last))
	})
	table.WriteNotes(p.out, style, c.notes())
	return p.out.Flush()
}

type changesPrinter struct {
	*Changes
	out   *bufio.Writer
	style table.Style
}

func (p *changesPrinter) printf(format string, args ...any) {
	p.out.WriteString(p.style.Draw(fmt.Sprintf(format, args...)))
}

func (p *changesPrinter) header() {
	switch {
	case p.Series == 0:
		p.printf("Changes: not searched\n")
	case len(p.List) == 0:
		p.printf("Changes: none\n")
	default:
		at := p.List[0].Time
		p.printf("Changes: %d on %s, times in %s\n", len(p.List), words.Clock(at).Format(time.DateOnly), words.ZoneAt(at))
	}
}

// maxFollowing is how many shifts are listed below the first one.
const maxFollowing = 8

// change prints a change: a line about the first shift, and a table of the others.
func (p *changesPrinter) change(number int) {
	c := &p.List[number-1]
	f := &c.Shifts[0]
	what, chance := fmt.Sprintf("%d  %s  %s ", number, c.when(), words.Clean(f.subject())), "("+words.Chance(c.P)+")"
	gap := "  "
	if p.style.Width > 0 && twwidth.Width(what+f.change()+gap+chance) > p.style.Width {
		gap = "\n   "
	}
	p.printf("\n%s%s%s%s\n", what, p.style.Paint(f.tone(), f.change()), gap, chance)
	rest := c.Shifts[1:]
	left := max(0, len(rest)-maxFollowing)
	rest = rest[:len(rest)-left]
	width := 0
	for i := range rest {
		width = max(width, twwidth.Width(words.Clean(rest[i].subject())))
	}
	for i := range rest {
		f := &rest[i]
		part := c.part(i + 1)
		if i > 0 && part == c.part(i) {
			part = ""
		}
		before, after := f.values()
		pad := strings.Repeat(" ", width-twwidth.Width(words.Clean(f.subject())))
		p.printf("   %-5s %s%s  %7s → %s\n", part, words.Clean(f.subject()), pad, before, p.style.Paint(f.tone(), after))
	}
	if left > 0 {
		p.printf("         and %d more\n", left)
	}
}

// tone returns whether a shift is for better or worse. Load and savings are neither.
func (f *Shift) tone() table.Tone {
	switch {
	case f.Metric.isLoad() || f.Metric.saves():
		return table.Plain
	case f.rises() || f.slowFrom != 0:
		return table.Bad
	}
	return table.Good
}

// list prints shifts that are not part of a change.
func (p *changesPrinter) list(title string, found []Shift, say func(*Shift) string) {
	for i := range found {
		if i == 0 {
			p.printf("\n%s:\n", title)
		}
		p.printf("   %s %s\n", words.Clean(found[i].subject()), say(&found[i]))
	}
}

// Pace is the subkind of findings about servers that became slower or faster.
const Pace = "pace"

// Names of the work that a pace is about.
const (
	decodePace  = "decode time per token"
	prefillPace = "prefill time"
)

// toSecond is the layout of a time that is known to about a second.
const toSecond = "15:04:05"

func isGradual(s changepoint.Shape) bool {
	return s == changepoint.Ramped || s == changepoint.Bent || s == changepoint.Sloped
}

// paceSubject names the pace and the servers that have it.
func (f *Shift) paceSubject() string {
	switch n := len(f.Ranks); {
	case f.Location.Scope == place.OneRank:
		return f.Name + "'s " + f.Stage
	case n == f.Peers && n == 2:
		return fmt.Sprintf("%s on both %s", f.Stage, f.servers())
	case n == f.Peers && n > 1:
		return fmt.Sprintf("%s on all %d %s", f.Stage, n, f.servers())
	case f.Peers > 1:
		return fmt.Sprintf("%s on %d of %d %s (%s)", f.Stage, n, f.Peers, f.servers(), f.hosts())
	}
	return f.Name + "'s " + f.Stage
}

// servers returns the plural for servers of the shift's role, or for its DP ranks.
func (f *Shift) servers() string {
	for i := range f.Steps {
		if f.Steps[i].Location.Rank.DP >= 0 {
			return f.Location.Role.String() + " DP ranks"
		}
	}
	return f.Location.Role.String() + " servers"
}

// hosts names the first servers, or DP ranks, of several.
func (f *Shift) hosts() string {
	const few = 3
	var names []string
	for i := range f.Steps {
		if i == few {
			names = append(names, fmt.Sprintf("and %d more", len(f.Steps)-few))
			break
		}
		if at := f.Steps[i].Location; at.Rank.DP >= 0 {
			names = append(names, at.DP())
		} else {
			names = append(names, at.ServerName())
		}
	}
	return strings.Join(names, ", ")
}

// paceChange says how a pace changed, and since when.
func (f *Shift) paceChange() string {
	before, after := f.values()
	percent := words.InPercent(max(f.relative(), -f.relative()))
	verb := "fell"
	if f.rises() {
		verb = "rose"
	}
	switch f.Shape {
	case changepoint.Ramped, changepoint.Bent:
		since := "from the start"
		if f.Shape == changepoint.Bent {
			since = "since " + words.When(f.Time, f.First, f.Last)
		}
		return fmt.Sprintf("%s by %s %% a minute %s, from %s to %s at the same load", verb, words.InPercent(max(f.PerMinute, -f.PerMinute)), since, before, after)
	case changepoint.Sloped:
		return fmt.Sprintf("%s by %s %% at the same load, from %s to %s, gradually between %s and %s", verb, percent, before, after,
			words.At(f.Time, toSecond), words.At(f.Full, toSecond))
	case changepoint.Settling:
		return fmt.Sprintf("began at %s and came to %s at %s: a warm-up", before, after, words.At(f.Until, toSecond))
	}
	if f.slowFrom != 0 {
		longer := distribution.Ratio(float64(f.Before.P50-f.After.P50), float64(f.After.P50))
		return fmt.Sprintf("was %s %% longer at the same load until %s than after it: it fell from %s to %s", words.InPercent(longer), words.When(f.Time, f.First, f.Last), before, after)
	}
	text := fmt.Sprintf("%s by %s %% at the same load, from %s to %s, ", verb, percent, before, after)
	switch {
	case f.rolls():
		return text + fmt.Sprintf("one after the other between %s and %s", words.At(f.Steps[0].Time, toSecond), words.At(f.Steps[len(f.Steps)-1].Time, toSecond))
	case f.Shape == changepoint.Spell:
		return text + fmt.Sprintf("at %s, until %s", words.When(f.Time, f.First, f.Last), words.At(f.Until, toSecond))
	}
	return text + "at " + words.When(f.Time, f.First, f.Last)
}

// rolls reports whether servers changed one after the other: more than a second apart, whatever the uncertainty of each time.
func (f *Shift) rolls() bool {
	const apart = trace.Time(1e9)
	latest, earliest := trace.Time(0), trace.Time(0)
	for i, s := range f.Steps {
		if i == 0 || s.First > latest {
			latest = s.First
		}
		if i == 0 || s.Last < earliest {
			earliest = s.Last
		}
	}
	return latest > earliest+apart
}

// name returns what people call the place of a shift. A lead rank goes by its DP rank, because it stands for the ranks
// that work beside it, or by its role if there is no other. Lateness alone is about one rank of these.
func (f *Shift) name() string {
	if f.Location.Scope != place.OneRank || f.Metric == LatenessChanged {
		return f.Location.String()
	}
	return f.Location.DP()
}

// Sentence says in plain words what happened: the first shift with its time, how arrivals
// changed with it, and the next two shifts of what users see and of stages.
func (c *Change) Sentence() string {
	first := &c.Shifts[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", first.subject(), first.change())
	switch {
	case first.Metric == PaceChanged:
	case isGradual(first.Shape):
		fmt.Fprintf(&b, " gradually since %s", c.when())
	default:
		fmt.Fprintf(&b, " at %s", c.when())
	}
	if first.Metric.isLength() && first.Limit > 0 && first.rises() {
		what := strings.TrimPrefix(first.metric().Name, "length of ")
		fmt.Fprintf(&b, ", as %s %% of the %s have %s tokens or more, before %s %%", words.InPercent(first.After.Share), what, words.Thousands(first.Limit), words.InPercent(first.Before.Share))
	}
	if (first.Metric == CachedChanged || first.Metric.isLength()) && first.Until != 0 {
		fmt.Fprintf(&b, ", until %s", words.At(first.Until, toSecond))
	}
	loads, latencies := 1, 2
	for i := range c.Shifts[1:] {
		f := &c.Shifts[1+i]
		left := &latencies
		if f.Metric.isLoad() {
			left = &loads
		}
		if *left == 0 || f.Metric.isLoad() && f.Metric != ArrivalsChanged {
			continue
		}
		*left--
		subject := f.subject()
		if rest, ok := strings.CutPrefix(subject, first.Name+"'s "); ok {
			subject = "its " + rest
		}
		fmt.Fprintf(&b, "; %s %s", subject, f.change())
	}
	return b.String()
}

// subject returns what changed.
func (f *Shift) subject() string {
	of := f.Name + "'s "
	if f.Location.Scope == place.Everywhere {
		of = ""
	}
	switch f.Metric {
	case ShareChanged:
		return of + "share of requests"
	case ArrivalsChanged:
		return "arrivals"
	case RunningChanged:
		if f.Location.Scope == place.Everywhere {
			return "requests under way"
		}
		return of + "running requests"
	case CachedChanged:
		return of + finding.CachedTokens
	case YieldChanged:
		return of + finding.StepYield
	case OutputChanged:
		return of + OutputLength
	case PromptChanged:
		return of + PromptLength
	case AbortsChanged:
		return GivenUpShare
	case RefusedChanged:
		return "share of requests that full queues turn away"
	case RetractedChanged:
		return "share of requests that are retracted"
	case PaceChanged:
		return f.paceSubject()
	case LatenessChanged:
		return of + "lateness in " + f.Stage
	case TailChanged:
		return fmt.Sprintf("%s%s beyond %s", of, f.stageWords(), words.Nearly(f.Limit))
	}
	return of + f.stageWords() + " p50"
}

// stageWords returns the words for the stage or latency that changed.
func (f *Shift) stageWords() string {
	if f.Stage == "ttft" || f.Stage == "tpot" || f.Stage == "e2e" {
		return strings.ToUpper(f.Stage)
	}
	if f.Stage == wholeAnswer {
		return "E2E"
	}
	return f.Stage
}

// change says from what to what the level changed.
func (f *Shift) change() string {
	if f.Metric == PaceChanged {
		return f.paceChange()
	}
	verb := "fell"
	if f.rises() {
		verb = "rose"
	}
	if f.Back {
		verb += " back"
	}
	before, after := f.values()
	return fmt.Sprintf("%s from %s to %s", verb, before, after)
}

// values formats the levels before and after. The unit is given once, unless the two are so different that each needs its own.
func (f *Shift) values() (before, after string) {
	x, y := f.Before.value(f.Metric), f.After.value(f.Metric)
	switch f.Metric {
	case ShareChanged, TailChanged, CachedChanged, AbortsChanged, RefusedChanged, RetractedChanged:
		return words.InPercent(x), words.InPercent(y) + " %"
	case ArrivalsChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y) + " /s"
	case OutputChanged, PromptChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y) + " tokens"
	case RunningChanged, YieldChanged:
		return words.ThreeDigits(x), words.ThreeDigits(y)
	}
	unit, size := words.UnitFor(int64(max(x, y)))
	if least := min(x, y) / size; least > 0 && least < 0.1 {
		return words.Nearly(int64(x)), words.Nearly(int64(y))
	}
	return words.ThreeDigits(x / size), words.ThreeDigits(y/size) + " " + unit
}

// when formats the time of a change as precisely as it is known.
func (c *Change) when() string { return words.When(c.Time, c.First, c.Last) }
