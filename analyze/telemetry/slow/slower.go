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

// stepTime returns the time per token of a request in each bucket, in s, including the prefills between steps; NaN if
// the rank did not decode.
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
	// fewStretches is the number of stretches averaged, because the batch may change during a single one.
	fewStretches = 5
	// beyond is how much larger batches may be than any that a pace was fitted to.
	beyond = 1.2
)

// Slower finds servers whose tokens take longer than on others of their role with the same load, or longer than
// before.
func Slower(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged decode speed", Of: "decode line", Needed: judge.FewBuckets * fewStretches}
	c := comparison{l: l}
	each := make([]slowness, len(l.Ranks))
	parallel.Each(len(l.Ranks), func(i int) { each[i] = c.slownessOf(&l.Ranks[i]) })
	servers := c.slowServers()
	all := slowness{slow: servers}
	for i := range each {
		where := &l.Ranks[i].Where
		if slices.ContainsFunc(servers, func(f finding.Finding) bool { return f.At.Host == where.Host && f.At.Role == where.Role }) {
			each[i].slow, each[i].slower = nil, nil
		}
		check.N += l.Ranks[i].Decodes
		all.again, all.slow, all.slower = append(all.again, each[i].again...), append(all.slow, each[i].slow...), append(all.slower, each[i].slower...)
	}
	if check.N == 0 {
		check.Reason = "no log has lines of decoding"
	}
	return slices.Concat(all.again, all.slow, withHalts(l, judge.Alike(all.slower))), check
}

// A slowness is the findings about the speed of a rank, or of all ranks: slow at regular intervals, slower than their
// peers, or slower than before. A single rank has only one of these.
type slowness struct{ again, slow, slower []finding.Finding }

// slownessOf returns the first finding about the speed of a rank.
func (c *comparison) slownessOf(r *telemetry.Rank) (s slowness) {
	if f, ok := slowAgain(c.l, r); ok {
		s.again = append(s.again, f)
	} else if f, ok := c.slowerThanPeers(r); ok {
		s.slow = append(s.slow, f)
	} else if f, ok := becameSlower(c.l, r); ok && !r.Scraped { // scrapes are too few to distinguish before from after
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

// A comparison compares ranks with their peers, concurrently.
type comparison struct {
	l     *telemetry.Logged
	paces sync.Map // of large groups of peers, by their places: func() standard
}

// A standard is the pace of some ranks, and the range of the batches that it was fitted to. ok is false if they did
// too little.
type standard struct {
	pace telemetry.Pace
	of   batches
	ok   bool
}

// standardFor returns the pace of the peers of one of the ranks that would take as long for the same work. In a large group,
// one rank more makes no difference, so all members share the pace of the whole group: fitting it for each would take quadratic time.
func (c *comparison) standardFor(ranks, peers []*telemetry.Rank) standard {
	const crowd = 20
	if len(ranks) <= crowd {
		return standardOf(peers)
	}
	key := make([]byte, 0, 4*len(ranks))
	for _, o := range ranks {
		key = binary.LittleEndian.AppendUint32(key, uint32(o.Place))
	}
	shared, _ := c.paces.LoadOrStore(string(key), sync.OnceValue(func() standard { return standardOf(ranks) }))
	return shared.(func() standard)()
}

// standardOf returns the pace of some ranks.
func standardOf(ranks []*telemetry.Rank) (s standard) {
	s.pace, s.of, s.ok = measuredOf(order.Each(ranks, func(o *telemetry.Rank) []telemetry.Stretch { return o.Stretches })...)
	return s
}

// likes returns the ranks that would take as long as r for the same work, including r: those of its role and engine
// whose KV cache has the same size, which a rank with another model rarely has. Ranks with lines, which include
// prompts computed between steps, are not compared with scraped ranks, which don't.
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

// peers returns the other ranks that would take as long as r for the same work.
func peers(l *telemetry.Logged, r *telemetry.Rank) []*telemetry.Rank { return without(likes(l, r), r) }

// without returns a list without one of its ranks.
func without(list []*telemetry.Rank, r *telemetry.Rank) []*telemetry.Rank {
	return slices.DeleteFunc(list, func(o *telemetry.Rank) bool { return o == r })
}

// A block is several consecutive stretches.
type block struct {
	at    trace.Time
	ratio float64 // median of recorded time divided by predicted time
	took  float64 // s: median
}

// blocks compares stretches with a pace. It leaves out batches that are larger than those that the pace was fitted
// to, or with more prompt tokens. Smaller batches are treated like the smallest of these, as they may take equally
// long.
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

func taken(list []block) (out []float64) {
	for _, b := range list {
		out = append(out, b.took)
	}
	return out
}

// A batches is the range of batches that a pace was fitted to: least and most are running requests, kv is the least
// use of the KV cache, in thousands of tokens, and prompts about the most prompt tokens between steps, in thousands.
type batches struct{ least, most, kv, prompts float64 }

// measuredOf fits a pace to some stretches, and returns the range of their batches.
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

// longerTokens returns consecutive parts, each with its own level, in which tokens take much longer than before. It
// returns all blocks as one part if that has no onset.
func longerTokens(list []block) (parts [][]block) {
	changes := changepoint.Levels(ratios(list), changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		before, after := telemetry.Middle(ratios(list[from:k])), telemetry.Middle(ratios(list[k:to]))
		return max(before, after) > judge.MuchLonger*min(before, after)
	}})
	usual := 0.0 // level before the first slow part
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
	if len(changes) == 0 {
		if k, ok := judge.Parted(ratios(list), judge.MuchLonger); ok {
			return append(parts, list[k:])
		}
	}
	if parts == nil {
		return append(parts, list)
	}
	return parts
}

// slowerThanPeers finds a rank whose tokens take longer than on its peers.
func (c *comparison) slowerThanPeers(r *telemetry.Rank) (f finding.Finding, ok bool) {
	ranks := likes(c.l, r)
	peers := without(slices.Clone(ranks), r)
	return c.slowerThan(r, ranks, peers, r.Where.String(), called(peers))
}

// slowerThan finds a rank whose tokens take longer than on its peers, which are among ranks. on names where, and others the peers.
func (c *comparison) slowerThan(r *telemetry.Rank, ranks, peers []*telemetry.Rank, on, others string) (f finding.Finding, ok bool) {
	if len(peers) == 0 {
		return f, false
	}
	l, than := c.l, c.standardFor(ranks, peers)
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
	slow := order.Count(peers, func(o *telemetry.Rank) bool { // if half of the ranks are slow, it is unknown what is usual
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
	f.Text = fmt.Sprintf("%sa token takes %s on %s, %s times as long as on %s with %s", lasts(f.Since, f.Until), words.Nearly(int64(took*1e9)), on, words.ThreeDigits(ratio), others, asMuch(r))
	for _, part := range parts[1:] {
		f.Text += fmt.Sprintf(", %s times since %s", words.ThreeDigits(telemetry.Middle(ratios(part))), words.TimeOfDay(part[0].at))
	}
	f.Brief = fmt.Sprintf("a token takes %s times as long on %s as on %s", words.ThreeDigits(ratio), on, others)
	f.Evidence = append(f.Evidence, finding.Sentence("it takes longer in %d of %d pieces of %d lines; compared by %s", long, len(part), fewStretches, comparedBy(&f, r)))
	if from > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("before, it took %s times as long as there", words.ThreeDigits(telemetry.Middle(ratios(list[:from])))))
	}
	return f, true
}

// called names the peers of a rank.
func called(peers []*telemetry.Rank) string {
	if len(peers) == 1 {
		return "the other one of its role"
	}
	return fmt.Sprintf("the other %d of its role", len(peers))
}

// since begins a sentence with an onset.
func since(t trace.Time) string { return lasts(t, 0) }

// lasts begins a sentence with a period. A from of 0 is unknown; a to of 0 is not over.
func lasts(from, to trace.Time) string {
	switch {
	case from == 0:
		return ""
	case to == 0:
		return "since " + words.TimeOfDay(from) + ", "
	}
	return fmt.Sprintf("from %s to %s, ", words.TimeOfDay(from), words.TimeOfDay(to))
}

// TimePerToken is the metric of findings about the time per token.
const TimePerToken = "time per token"

// becameSlower finds a rank whose tokens take longer from some time on than they would have before.
func becameSlower(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	p, of, ok := measuredOf(r.Stretches)
	list := blocks(r.Stretches, &p, &of)
	if !ok || len(list) < judge.FewBuckets {
		return f, false
	}
	changes := changepoint.Levels(ratios(list), changepoint.Options{Alpha: judge.Surely})
	if c, levels := falls(order.Each(list, func(b block) float64 { return 1 / b.ratio })); levels != nil && len(changes) == 0 {
		changes = append(changes, c)
	}
	for _, c := range changes {
		for _, d := range changes { // it may become slower still
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
			continue // its batches are larger than ever before, or only the load grew
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
			f.Confidence, f.Text = finding.Likely, fmt.Sprintf("gradually since %s, a token takes longer on %s: %s at the end, %s before with as much to do", words.TimeOfDay(at), r.Where.String(), last, words.Nearly(int64(took/ratio*1e9)))
		}
		f.Evidence = append(f.Evidence, finding.Sentence("compared by running requests, tokens in the KV cache, and prompts computed meanwhile, in %d pieces of %d lines", len(after), fewStretches))
		f.Evidence = append(f.Evidence, asMuchBetween(l, r, f.Since, f.Until)...)
		return f, true
	}
	return f, false
}

// asMuch says in which respect the load is equal where tokens are compared. Scrapes may not show how many prompts are
// computed meanwhile.
func asMuch(r *telemetry.Rank) string {
	if r.Scraped && !tellsPrompts(r) {
		return "as many in its batch"
	}
	return "as much to do"
}

// comparedBy says what load tokens are compared by. A finding from scrapes is not certain: prompts may be longer, or
// come more often.
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

// tellsPrompts reports whether the prompt tokens computed between the steps of a rank are known.
func tellsPrompts(r *telemetry.Rank) bool {
	return slices.ContainsFunc(r.Stretches, func(x telemetry.Stretch) bool { return x.Prompts > 0 })
}

// slowAgain finds a rank whose tokens take longer at regular intervals, for the same time each.
func slowAgain(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	p, _, ok := measuredOf(r.Stretches)
	if !ok {
		return f, false
	}
	seconds := func(t trace.Time) float64 { return float64(t-r.Stretches[0].At) / 1e9 }
	longest := 2 * seconds(r.Stretches[len(r.Stretches)-1].At) / float64(len(r.Stretches)) // the longest stretch; before it, the rank may have been idle
	list := make([]changepoint.Observation, len(r.Stretches))
	for i := range list {
		x := &r.Stretches[i]
		to := seconds(x.At)
		list[i] = changepoint.Observation{From: max(to-longest, seconds(r.Stretches[max(0, i-1)].At)), To: to, Value: p.Takes(x) / x.Token, Weight: 1}
	}
	pulses := changepoint.FindPulses(list)
	if pulses.P*float64(len(l.Ranks)) > judge.Surely/10 { // stricter, because very many pulses are tried
		return f, false
	}
	var took, work [2][]float64 // outside of pulses, and in them
	for i, o := range list {
		in := pulses.Over(o.From, o.To)
		if k := int(in); float64(k) == in {
			took[k], work[k] = append(took[k], r.Stretches[i].Token), append(work[k], p.Takes(&r.Stretches[i]))
		}
	}
	usual, slow := telemetry.Middle(took[0]), telemetry.Middle(took[1])
	if more := telemetry.Middle(work[1]) / telemetry.Middle(work[0]); !(slow > judge.MuchLonger*usual) || more-1 > (slow/usual-1)/2 {
		return f, false // the load is higher in pulses
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
