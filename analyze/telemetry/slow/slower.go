package slow

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/trace"
)

// stepTime is how long a token of one request took in each bucket, in s, with the prefills between
// its steps. NaN where a rank did not decode.
func stepTime(l *telemetry.Logged, r *telemetry.Rank) []float64 {
	out := make([]float64, l.Grid.N())
	n := make([]float64, len(out))
	for i := range r.Stretches {
		if b := l.Grid.Of(r.Stretches[i].At); b >= 0 && b < len(out) {
			out[b] += r.Stretches[i].Token
			n[b]++
		}
	}
	for b := range out {
		out[b] /= n[b] // NaN without any
	}
	return out
}

const (
	// fewStretches are taken together: of one, the batch changed meanwhile.
	fewStretches = 5
	// beyond is how much larger batches may be than any that a pace was measured of.
	beyond = 1.2
)

// Slower finds servers whose tokens take longer than those of the others of their role would with as
// much to do, or longer than their own did before.
func Slower(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged decode speed", Of: "decode line", Needed: judge.FewBuckets * fewStretches}
	c := comparison{l: l}
	each := make([]slowness, len(l.Ranks))
	parallel.Each(len(l.Ranks), func(i int) { each[i] = c.slownessOf(&l.Ranks[i]) })
	var all slowness
	for i := range each {
		check.N += l.Ranks[i].Decodes
		all.again, all.slow, all.slower = append(all.again, each[i].again...), append(all.slow, each[i].slow...), append(all.slower, each[i].slower...)
	}
	if check.N == 0 {
		check.Reason = "no log has lines of decoding"
	}
	return slices.Concat(all.again, all.slow, withHalts(l, judge.Alike(all.slower))), check
}

// A slowness is what there is to say about the speed of ranks: slow again and again, slower than their
// peers, or slower than they were. It has one of these for each rank.
type slowness struct{ again, slow, slower []finding.Finding }

// slownessOf looks for what a rank is slow at; the first that is found is told.
func (c *comparison) slownessOf(r *telemetry.Rank) (s slowness) {
	if f, ok := slowAgain(c.l, r); ok {
		s.again = append(s.again, f)
	} else if f, ok := c.slowerThanPeers(r); ok {
		s.slow = append(s.slow, f)
	} else if f, ok := becameSlower(c.l, r); ok && !r.Scraped { // scrapes are too few to tell before from behind
		s.slower = append(s.slower, f)
	} else if list := longerForSame(c.l, r); len(list) > 0 {
		s.slower = append(s.slower, list...)
	} else if f, ok := longerThanThere(c.l, r); ok {
		s.slow = append(s.slow, f)
	} else if x, ok := risingQueue(c.l, r); ok && x.doesLess() {
		s.slower = append(s.slower, x.lessDone(c.l, r))
	}
	return s
}

// A comparison compares ranks with their peers.
type comparison struct {
	l     *telemetry.Logged
	paces sync.Map // of crowds, by who is in them: func() standard
}

// A standard is the pace of some ranks, and the batches that it was measured of; ok is false if they did too little.
type standard struct {
	pace telemetry.Pace
	of   batches
	ok   bool
}

// standardFor returns the pace of the peers of a rank. In a crowd, one rank more changes nothing, so its members
// share the pace of all: measuring it for each of them would take quadratic time.
func (c *comparison) standardFor(r *telemetry.Rank) standard {
	const crowd = 20
	ranks := likes(c.l, r)
	measure := func() (s standard) {
		lists := make([][]telemetry.Stretch, len(ranks))
		for i, o := range ranks {
			lists[i] = o.Stretches
		}
		s.pace, s.of, s.ok = measuredOf(lists...)
		return s
	}
	if len(ranks) <= crowd {
		ranks = without(ranks, r)
		return measure()
	}
	key := make([]byte, 0, 4*len(ranks))
	for _, o := range ranks {
		key = binary.LittleEndian.AppendUint32(key, uint32(o.Place))
	}
	shared, _ := c.paces.LoadOrStore(string(key), sync.OnceValue(measure))
	return shared.(func() standard)()
}

// likes are the ranks that would take as long as r for the same, r among them: those of its role, on other
// machines or with other batches, whose KV cache is as large. One of another model is hardly ever. Lines tell of prompts that
// are computed between steps, and scrapes do not: they are not compared with each other.
func likes(l *telemetry.Logged, r *telemetry.Rank) (list []*telemetry.Rank) {
	least, most := r.Holds()
	for k := range l.Ranks {
		o := &l.Ranks[k]
		if o.Where.Role != r.Where.Role || len(o.Stretches) == 0 || o.Scraped != r.Scraped || l.Set.Servers[o.Server].Engine != l.Set.Servers[r.Server].Engine {
			continue
		}
		if from, to := o.Holds(); from <= most && least <= to {
			list = append(list, o)
		}
	}
	return list
}

// peers are the other ranks that would take as long as r for the same.
func peers(l *telemetry.Logged, r *telemetry.Rank) []*telemetry.Rank { return without(likes(l, r), r) }

// without takes a rank out of a list.
func without(list []*telemetry.Rank, r *telemetry.Rank) []*telemetry.Rank {
	return slices.DeleteFunc(list, func(o *telemetry.Rank) bool { return o == r })
}

// A block is some stretches that follow each other.
type block struct {
	at    trace.Time
	ratio float64 // the median of how long they took, by how long they would at a pace
	took  float64 // the median, in s
}

// blocks compares stretches with a pace, where their batches are no larger than those that it was measured
// of, and no more prompts are computed. Smaller ones may take as long as the smallest of these.
func blocks(list []telemetry.Stretch, p *telemetry.Pace, of *batches) (out []block) {
	var ratios, took []float64
	var at trace.Time
	for i := range list {
		x := list[i]
		if x.Running > beyond*of.most || x.Prompts > beyond*of.prompts {
			continue
		}
		x.Running, x.KV = max(x.Running, of.least), max(x.KV, of.kv)
		if len(ratios) == 0 {
			at = x.At
		}
		ratios, took = append(ratios, x.Token/p.Takes(&x)), append(took, x.Token)
		if len(ratios) == fewStretches {
			out = append(out, block{at, telemetry.Middle(ratios), telemetry.Middle(took)})
			ratios, took = nil, nil
		}
	}
	return out
}

func ratios(list []block) (out []float64) {
	for _, b := range list {
		out = append(out, b.ratio)
	}
	return out
}

// speeds are how fast tokens came, by how fast they would at a pace.
func speeds(list []block) (out []float64) {
	for _, b := range list {
		out = append(out, 1/b.ratio)
	}
	return out
}

func taken(list []block) (out []float64) {
	for _, b := range list {
		out = append(out, b.took)
	}
	return out
}

// A batches is how large the batches were that a pace was measured of: how many requests ran at least and
// at most, how much of the KV cache they had at least, and how many thousands of prompt tokens came between them at most, in some of them.
type batches struct{ least, most, kv, prompts float64 }

// measuredOf returns the pace of some stretches, and of which batches it is.
func measuredOf(lists ...[]telemetry.Stretch) (p telemetry.Pace, of batches, ok bool) {
	const most = 4000
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	each := 1 + n/most
	var use []*telemetry.Stretch
	of.least, of.kv = math.Inf(1), math.Inf(1)
	for _, list := range lists {
		for i := range list {
			x := &list[i]
			of.least, of.most, of.kv = min(of.least, x.Running), max(of.most, x.Running), min(of.kv, x.KV)
			if i%each == 0 {
				use = append(use, x)
			}
		}
	}
	if p, ok = telemetry.PaceOf(use); ok {
		prompts := make([]float64, len(use))
		for i, x := range use {
			prompts[i] = x.Prompts
		}
		slices.Sort(prompts)
		of.prompts = prompts[len(prompts)-fewStretches]
	}
	return p, of, ok
}

// longerTokens returns the parts, one after the other, in which tokens of a rank take much longer than before, by as much in each; or all
// of the blocks if that begins nowhere.
func longerTokens(list []block) (parts [][]block) {
	changes := changepoint.Levels(ratios(list), changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		before, after := telemetry.Middle(ratios(list[from:k])), telemetry.Middle(ratios(list[k:to]))
		return max(before, after) > judge.MuchLonger*min(before, after)
	}})
	usual := 0.0 // before the first of them
	for _, c := range changes {
		part := list[c.At:c.To]
		if parts == nil {
			usual = telemetry.Middle(ratios(list[c.From:c.At]))
		}
		if telemetry.Middle(ratios(part)) > judge.MuchLonger*usual {
			parts = append(parts, part)
		} else if parts != nil {
			break
		}
	}
	if k, ok := judge.Parted(ratios(list), judge.MuchLonger); ok && len(changes) == 0 {
		return append(parts, list[k:])
	}
	if parts == nil {
		return append(parts, list)
	}
	return parts
}

// slowerThanPeers finds a rank whose tokens take longer than those of its peers would.
func (c *comparison) slowerThanPeers(r *telemetry.Rank) (f finding.Finding, ok bool) {
	l, peers := c.l, peers(c.l, r)
	if len(peers) == 0 {
		return f, false
	}
	than := c.standardFor(r)
	list := blocks(r.Stretches, &than.pace, &than.of)
	if !than.ok || len(list) < judge.FewBuckets {
		return f, false
	}
	parts := longerTokens(list)
	part := slices.Concat(parts...)
	from := slices.IndexFunc(list, func(b block) bool { return b.at == part[0].at })
	to := from + len(part)
	if from > 0 {
		f.Since = list[from].at
	}
	if to < len(list) {
		f.Until = list[to].at
	}
	ratio := telemetry.Middle(ratios(parts[0]))
	if ratio < judge.MuchLonger || len(part) < 3 {
		return f, false
	}
	slow := order.Count(peers, func(o *telemetry.Rank) bool { // of as many slow ones as others, nobody knows what is usual
		other := slices.DeleteFunc(blocks(o.Stretches, &than.pace, &than.of), func(b block) bool { return b.at < f.Since || f.Until != 0 && b.at >= f.Until })
		return len(other) > 0 && telemetry.Middle(ratios(other)) > ratio/judge.MuchLonger
	})
	long := order.Count(part, func(b block) bool { return b.ratio > 1 })
	n := min(20, len(part))
	chance := min(1, float64(len(peers)+1)*significance.AtLeastOf(long*n/len(part), n, 0.5))
	if 2*slow > len(peers) || chance > judge.Surely && len(part) > 7 || long < len(part) && len(part) <= 7 {
		return f, false
	}
	took := telemetry.Middle(taken(parts[0]))
	usual := took / ratio
	f.At, f.P = r.Where, finding.Chance(chance)
	for i, part := range parts {
		end := f.Until
		if i+1 < len(parts) {
			end = parts[i+1][0].at
		}
		f.Cost += (1 - 1/telemetry.Middle(ratios(part))) * l.Running(r, l.Between(part[0].at, end))
	}
	f.Metric = finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: usual * 1e9, After: took * 1e9}
	others := called(peers)
	f.Text = fmt.Sprintf("%sa token takes %s on %s, %s times as long as on %s with %s", lasts(f.Since, f.Until), words.Nearly(int64(took*1e9)), r.Where.String(), words.ThreeDigits(ratio), others, asMuch(r))
	for _, part := range parts[1:] {
		f.Text += fmt.Sprintf(", %s times since %s", words.ThreeDigits(telemetry.Middle(ratios(part))), words.TimeOfDay(part[0].at))
	}
	f.Brief = fmt.Sprintf("a token takes %s times as long on %s as on %s", words.ThreeDigits(ratio), r.Where.String(), others)
	f.Evidence = append(f.Evidence, finding.Sentence("it takes longer in %d of %d pieces of %d lines; compared by %s", long, len(part), fewStretches, comparedBy(&f, r)))
	if from > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("before, it took %s times as long as there", words.ThreeDigits(telemetry.Middle(ratios(list[:from])))))
	}
	return f, true
}

// called is what the peers of a rank are called.
func called(peers []*telemetry.Rank) string {
	if len(peers) == 1 {
		return "the other one of its role"
	}
	return fmt.Sprintf("the other %d of its role", len(peers))
}

// since begins a sentence that says since when.
func since(t trace.Time) string { return lasts(t, 0) }

// lasts begins a sentence that says from when to when; 0 is not known, or not over.
func lasts(from, to trace.Time) string {
	switch {
	case from == 0:
		return ""
	case to == 0:
		return "since " + words.TimeOfDay(from) + ", "
	}
	return fmt.Sprintf("from %s to %s, ", words.TimeOfDay(from), words.TimeOfDay(to))
}

// TimePerToken is the metric of findings of how long tokens take.
const TimePerToken = "time per token"

// becameSlower finds a rank whose tokens take longer from some time on than they would have before.
func becameSlower(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	p, of, ok := measuredOf(r.Stretches)
	list := blocks(r.Stretches, &p, &of)
	if !ok || len(list) < judge.FewBuckets {
		return f, false
	}
	changes := changepoint.Levels(ratios(list), changepoint.Options{Alpha: judge.Surely})
	if c, levels := falls(speeds(list)); levels != nil && len(changes) == 0 {
		changes = append(changes, c)
	}
	for _, c := range changes {
		for _, d := range changes { // it may become one that is slower still
			if d.At == c.To && telemetry.Middle(ratios(list[d.At:d.To])) > judge.MuchLonger*telemetry.Middle(ratios(list[c.From:c.At])) {
				c.To = d.To
			}
		}
		at := list[c.At].at
		k := slices.IndexFunc(r.Stretches, func(x telemetry.Stretch) bool { return x.At >= at })
		before, of, ok := measuredOf(r.Stretches[:k])
		if !ok {
			continue
		}
		after := blocks(r.Stretches[k:], &before, &of)
		if c.To < len(list) {
			end := list[c.To].at
			after = slices.DeleteFunc(after, func(b block) bool { return b.at >= end })
		}
		ratio := telemetry.Middle(ratios(after))
		if len(after) < 3 || 2*len(after) < c.To-c.At || ratio < judge.MuchLonger {
			continue // its batches are larger than they ever were, or it is only load
		}
		took := telemetry.Middle(taken(after))
		f = finding.Finding{At: r.Where, Since: at, P: finding.Chance(c.P), Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: took / ratio * 1e9, After: took * 1e9}}
		if c.To < len(list) {
			f.Until = list[c.To].at
		}
		f.Cost = (1 - 1/ratio) * l.Running(r, l.Between(at, f.Until))
		f.Text = fmt.Sprintf("since %s, a token takes %s on %s, %s before with as much to do", words.TimeOfDay(at), words.Nearly(int64(took*1e9)), r.Where.String(), words.Nearly(int64(took/ratio*1e9)))
		f.Brief = fmt.Sprintf("a token takes %s on %s, %s before with as much to do", words.Nearly(int64(took*1e9)), r.Where.String(), words.Nearly(int64(took/ratio*1e9)))
		if math.IsNaN(c.P) {
			last := words.Nearly(int64(telemetry.Middle(taken(after[len(after)*9/10:])) * 1e9))
			f.Confidence, f.Text = finding.Likely, fmt.Sprintf("bit by bit since %s, a token takes longer on %s: %s at the end, %s before with as much to do", words.TimeOfDay(at), r.Where.String(), last, words.Nearly(int64(took/ratio*1e9)))
		}
		f.Evidence = append(f.Evidence, finding.Sentence("compared by running requests, tokens in the KV cache, and prompts computed meanwhile, in %d pieces of %d lines", len(after), fewStretches))
		f.Evidence = append(f.Evidence, asMuchBetween(l, r, f.Since, f.Until)...)
		return f, true
	}
	return f, false
}

// asMuch is what a rank has as much of where its tokens are compared: of scrapes, nobody knows what it computes of prompts meanwhile.
func asMuch(r *telemetry.Rank) string {
	if r.Scraped && !tellsPrompts(r) {
		return "as many in its batch"
	}
	return "as much to do"
}

// comparedBy is what tokens are compared by. A finding of scrapes is not certain: prompts may be longer, or come more often.
func comparedBy(f *finding.Finding, r *telemetry.Rank) string {
	if r.Scraped {
		f.Confidence = finding.Likely
	}
	if r.Scraped && !tellsPrompts(r) {
		return "running requests and tokens in the KV cache; these metrics do not tell how many prompts are computed meanwhile"
	}
	if slices.ContainsFunc(r.Stretches, func(x telemetry.Stretch) bool { return x.Accepted > 1 }) {
		return "running requests, tokens in the KV cache, prompts computed meanwhile, and accepted drafts"
	}
	return "running requests, tokens in the KV cache, and prompts computed meanwhile"
}

// tellsPrompts reports whether what a rank did tells how many tokens of prompts were computed meanwhile.
func tellsPrompts(r *telemetry.Rank) bool {
	return slices.ContainsFunc(r.Stretches, func(x telemetry.Stretch) bool { return x.Prompts > 0 })
}

// slowAgain finds a rank whose tokens take longer than they would otherwise, as long each time, and at equal intervals.
func slowAgain(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	p, _, ok := measuredOf(r.Stretches)
	if !ok {
		return f, false
	}
	seconds := func(t trace.Time) float64 { return float64(t-r.Stretches[0].At) / 1e9 }
	longest := 2 * seconds(r.Stretches[len(r.Stretches)-1].At) / float64(len(r.Stretches)) // of a stretch; before, it may have had nothing to do
	list := make([]changepoint.Observation, len(r.Stretches))
	for i := range list {
		x := &r.Stretches[i]
		to := seconds(x.At)
		list[i] = changepoint.Observation{From: max(to-longest, seconds(r.Stretches[max(0, i-1)].At)), To: to, Value: p.Takes(x) / x.Token, Weight: 1}
	}
	pulses := changepoint.FindPulses(list)
	if pulses.P*float64(len(l.Ranks)) > judge.Surely/10 { // of a search among very many
		return f, false
	}
	var took, work [2][]float64 // otherwise, and in pulses
	for i, o := range list {
		in := pulses.Over(o.From, o.To)
		if k := int(in); float64(k) == in {
			took[k], work[k] = append(took[k], r.Stretches[i].Token), append(work[k], p.Takes(&r.Stretches[i]))
		}
	}
	usual, slow := telemetry.Middle(took[0]), telemetry.Middle(took[1])
	if more := telemetry.Middle(work[1]) / telemetry.Middle(work[0]); !(slow > judge.MuchLonger*usual) || more-1 > (slow/usual-1)/2 {
		return f, false // there is more to do then
	}
	times := func(k int) trace.Time { return r.Stretches[0].At + trace.Time(pulses.Begin(pulses.Seen[k])*1e9) }
	last := len(pulses.Seen) - 1
	f = finding.Finding{At: r.Where, Since: times(0), P: finding.Chance(pulses.P), Cost: (1 - usual/slow) * pulses.Length * float64(pulses.Count) / l.Seconds() * l.Running(r, l.Between(l.From, 0)),
		Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: usual * 1e9, After: slow * 1e9}}
	f.Brief = fmt.Sprintf("a token takes %s on %s for about %s every %s, %s otherwise with %s", words.Nearly(int64(slow*1e9)), r.Where.String(),
		words.Nearly(int64(pulses.Length*1e9)), words.Nearly(int64(pulses.Every*1e9)), words.Nearly(int64(usual*1e9)), asMuch(r))
	f.Text = fmt.Sprintf("%s: %d times between %s and %s", f.Brief, len(pulses.Seen), words.TimeOfDay(f.Since), words.TimeOfDay(times(last)))
	return f, true
}
