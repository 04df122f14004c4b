package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Trait is a value of an attribute that some requests share.
type Trait struct {
	Attribute string // as the dump or a report names it: "model", "gen_ai.request.priority"
	Value     string // the value, or a bound: "3,072 or more"
	Of        Kind
	At        place.Location // of a trait that is a rank; else everywhere
	in        []bool         // by index into the list of requests
	n         int            // number of requests that have it
}

// Kind is what a trait is about.
type Kind uint8

const (
	Asked Kind = iota // what was asked for, and by whom
	Size              // length of the prompt, or of its cached part
	Where             // where it was computed; other reports cover that, too
)

// An attribute has at most maxValues values that are looked at, each of at least fewest requests. With more than
// maxNumbers different numbers, requests are divided at bounds instead.
const (
	fewest     = 5
	maxValues  = 40
	maxNumbers = 12
	maxKnown   = 1 << 12 // the most numbers of one attribute whose hashed texts are remembered
)

// A collector gathers the traits of a list of requests.
type collector struct {
	set    *request.Set
	list   []cause.Attribution
	traits []Trait
	rules  []Trait // traits of most requests
}

// traitsOf returns the traits of requests. rules are the traits that most requests have.
func traitsOf(s *request.Set, list []cause.Attribution) (traits, rules []Trait) {
	looks := []func(*collector){
		func(c *collector) {
			c.texts("model", Asked, func(a *cause.Attribution) string { return s.ModelOf(c.request(a)) })
		},
		(*collector).addAttributes,
		func(c *collector) { c.texts("a request ID that begins with", Asked, c.beginning()) },
		func(c *collector) {
			c.numbers("prompt tokens", Size, func(a *cause.Attribution) float64 { return count(c.request(a).Metrics.PromptTokens) })
			c.numbers(CachedTokens, Size, func(a *cause.Attribution) float64 { return count(c.request(a).Metrics.CachedTokens) })
		},
		(*collector).places,
	}
	each := make([]collector, len(looks))
	parallel.Each(len(looks), func(i int) {
		each[i] = collector{set: s, list: list}
		looks[i](&each[i])
	})
	for i := range each {
		traits, rules = append(traits, each[i].traits...), append(rules, each[i].rules...)
	}
	return traits, rules
}

func (c *collector) request(a *cause.Attribution) *request.Request { return &c.set.Requests[a.Request] }

// count returns n, or NaN if it is unknown.
func count(n int64) float64 {
	if n == request.Unknown {
		return math.NaN()
	}
	return float64(n)
}

// A column holds the values of one attribute, by request.
type column struct {
	key     trace.Sym
	name    string
	texts   []uint64 // hashes; 0 for numbers
	numbers []float64
	numeric bool // all values are numbers
}

// columns returns the attributes that requests have, except for those that are results of serving them.
func (c *collector) columns() (columns []*column) {
	byKey := map[trace.Sym]*column{} // nil for a result
	for i := range cause.Each(c.list) {
		c.set.EachAttribute(c.request(&c.list[i]), func(a request.Attribute) {
			col, known := byKey[a.Key]
			if !known {
				if !c.set.IsResult(a.Key) {
					n := len(c.list)
					col = &column{key: a.Key, name: c.set.KeyName(a.Key), texts: memory.Make[uint64](n), numbers: memory.Make[float64](n), numeric: true}
					for k := range col.numbers {
						col.numbers[k] = math.NaN()
					}
					columns = append(columns, col)
				}
				byKey[a.Key] = col
			}
			if col == nil {
				return
			}
			if col.texts[i], col.numbers[i] = 0, a.Number; math.IsNaN(a.Number) {
				col.texts[i], col.numeric = order.MixText(c.set.AttributeText(a)), false
			}
		})
	}
	slices.SortFunc(columns, func(x, y *column) int { return cmp.Compare(x.name, y.name) })
	return columns
}

// addAttributes adds the attributes that requests came with.
func (c *collector) addAttributes() {
	for _, col := range c.columns() {
		if col.numeric && isSpread(col.numbers) {
			c.bounds(col.name, Asked, col.numbers)
			continue
		}
		text := func(i int) (text string) {
			c.set.EachAttribute(c.request(&c.list[i]), func(a request.Attribute) {
				if a.Key == col.key {
					text = c.set.AttributeText(a)
				}
			})
			return text
		}
		known := map[float64]uint64{}
		for i, n := range col.numbers {
			if math.IsNaN(n) {
				continue
			}
			h := known[n]
			if h == 0 {
				if h = order.MixText(text(i)); len(known) < maxKnown {
					known[n] = h
				}
			}
			col.texts[i] = h
		}
		c.values(col.name, Asked, col.texts, text)
	}
}

// beginning returns a function that returns the beginning of a request's ID: its first word, or, if all begin with
// the same words, these and one more. Clients often put the sender into IDs: "acme-4f1c", "user_42_turn_1".
func (c *collector) beginning() func(*cause.Attribution) string {
	for end := 0; ; {
		upTo := func(a *cause.Attribution) string {
			id := c.set.Text(c.request(a).RID)
			word := strings.IndexAny(id[min(end, len(id)):], "-_:/.")
			if word < 0 {
				return ""
			}
			return id[:end+word]
		}
		first := ""
		if len(c.list) > 0 {
			first = upTo(&c.list[0])
		}
		if first == "" || slices.ContainsFunc(c.list, func(a cause.Attribution) bool { return upTo(&a) != first }) {
			return upTo
		}
		end = len(first) + 1
	}
}

// isSpread reports whether there are more than maxNumbers different numbers.
func isSpread(numbers []float64) bool {
	var seen []float64
	for _, v := range numbers {
		if math.IsNaN(v) || slices.Contains(seen, v) {
			continue
		}
		if seen = append(seen, v); len(seen) > maxNumbers {
			return true
		}
	}
	return false
}

// places adds where requests were prefilled and answered.
func (c *collector) places() {
	rank := func(proc int32) string { return c.set.RankName(int(proc)) }
	host := func(proc int32) string {
		if proc == request.None || c.set.Procs[proc].Host == "" {
			return ""
		}
		return c.set.HostOf(int(proc))
	}
	onRank := func(attribute string, proc func(*cause.Attribution) int32) {
		first := len(c.traits)
		c.texts(attribute, Where, func(a *cause.Attribution) string { return rank(proc(a)) })
		for i := first; i < len(c.traits); i++ {
			t := &c.traits[i]
			t.At = place.NewLocation(c.set, int(proc(&c.list[slices.Index(t.in, true)]))).Team()
		}
	}
	answer := func(a *cause.Attribution) int32 { return a.Answer }
	prefill := func(a *cause.Attribution) int32 { return a.Prefill }
	apart := false
	for i := range cause.Each(c.list) {
		apart = apart || c.list[i].Prefill != c.list[i].Answer
	}
	onRank("rank", answer)
	c.texts("host", Where, func(a *cause.Attribution) string { return host(a.Answer) })
	if apart {
		onRank("prefill rank", prefill)
		c.texts("prefill host", Where, func(a *cause.Attribution) string { return host(a.Prefill) })
		c.texts("hosts", Where, func(a *cause.Attribution) string {
			if a.Prefill == request.None || a.Answer == request.None {
				return ""
			}
			return host(a.Prefill) + " to " + host(a.Answer)
		})
	}
}

// texts adds an attribute with a text for every request; "" is none.
func (c *collector) texts(attribute string, of Kind, text func(*cause.Attribution) string) {
	texts := memory.Make[uint64](len(c.list))
	for i := range cause.Each(c.list) {
		if text := text(&c.list[i]); text != "" {
			texts[i] = order.MixText(text)
		}
	}
	c.values(attribute, of, texts, func(i int) string { return text(&c.list[i]) })
}

// values adds the values of an attribute that enough requests have, if there are several. It takes hashes, 0 for
// none, because there may be as many different texts as requests.
func (c *collector) values(attribute string, of Kind, hashes []uint64, text func(i int) string) {
	type value struct {
		hash uint64
		n    int
		text string
	}
	sorted := memory.Make[uint64](len(hashes))
	copy(sorted, hashes)
	slices.Sort(sorted)
	var values []value
	for from, to := 0, 0; from < len(sorted); from = to {
		for to = from + 1; to < len(sorted) && sorted[to] == sorted[from]; to++ {
		}
		if sorted[from] != 0 && to-from >= fewest {
			values = append(values, value{hash: sorted[from], n: to - from})
		}
	}
	for k := range values {
		values[k].text = text(slices.Index(hashes, values[k].hash))
	}
	slices.SortFunc(values, func(x, y value) int { return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.text, y.text)) })
	for _, v := range values[:min(maxValues, len(values))] {
		c.add(attribute, v.text, of, func(i int) bool { return hashes[i] == v.hash })
	}
}

// numbers adds an attribute with a number for every request; NaN is unknown.
func (c *collector) numbers(attribute string, of Kind, number func(*cause.Attribution) float64) {
	numbers := memory.Make[float64](len(c.list))
	for i := range cause.Each(c.list) {
		numbers[i] = number(&c.list[i])
	}
	c.bounds(attribute, of, numbers)
}

// bounds adds traits that divide requests by a number: 0, the median or more, and the 90th percentile or more.
func (c *collector) bounds(attribute string, of Kind, numbers []float64) {
	known := slices.DeleteFunc(slices.Clone(numbers), math.IsNaN)
	if len(known) == 0 {
		return
	}
	slices.Sort(known)
	if known[0] == 0 {
		c.add(attribute, "0", of, func(i int) bool { return numbers[i] == 0 })
	}
	last := math.NaN()
	for _, percent := range []int{50, 90} {
		bound := known[request.PercentileIndex(len(known), percent)]
		if bound == known[0] || bound == last {
			continue
		}
		last = bound
		c.add(attribute, numberText(bound)+" or more", of, func(i int) bool { return numbers[i] >= bound })
	}
}

func numberText(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return words.Thousands(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// add adds a trait, unless too few requests have it. If more than three quarters have it, it is a rule.
func (c *collector) add(attribute, value string, of Kind, in func(i int) bool) {
	t := Trait{Attribute: attribute, Value: value, Of: of, in: memory.Make[bool](len(c.list))}
	for i := range cause.Each(c.list) {
		if t.in[i] = in(i); t.in[i] {
			t.n++
		}
	}
	switch {
	case t.n < fewest:
	case 4*t.n <= 3*len(c.list):
		c.traits = append(c.traits, t)
	default:
		c.rules = append(c.rules, t)
	}
}

// String names a trait in a sentence.
func (t *Trait) String() string { return fmt.Sprintf("%s %s", t.Attribute, t.Value) }

// Senders says, as the end of a sentence, which trait most of the requests share that have arrived since a time in
// excess of the earlier rate, and which finished requests have it. It returns "" if there is no such trait, or most
// requests had it before.
func (t *Traits) Senders(since trace.Time) (words string, have []bool) {
	best, part, before := t.largestTrait(since, func(*request.Metrics) float64 { return 1 })
	if best == nil {
		return "", nil
	}
	if have = best.in; before > 0.5 {
		have = nil // most of those that have it are not added
	}
	return fmt.Sprintf("; %.0f %% of the added requests have %s", 100*part, best), have
}

// Askers does the same for tokens, or decode steps, in excess of the earlier rate. number returns how many a request has.
// have is nil unless a third of the requests with the trait are added, too.
func (t *Traits) Askers(since trace.Time, what string, number func(*request.Metrics) int64) (words string, have []bool) {
	best, part, _ := t.largestTrait(since, func(m *request.Metrics) float64 { return float64(max(0, number(m))) })
	if best == nil {
		return "", nil
	}
	if t.comeMore(best, since) {
		have = best.in
	}
	return fmt.Sprintf("; %.0f %% of the added %s are of requests with %s", 100*part, what, best), have
}

// comeMore reports whether requests with a trait have come at least one and a half times as often since a time.
func (t *Traits) comeMore(trait *Trait, since trace.Time) bool {
	with, _, longer := t.sides(trait, since, func(*request.Metrics) float64 { return 1 })
	return with[1] >= 1.5*with[0]*longer
}

// largestTrait returns the trait with the largest share of the weight added since a time, and that share. It returns
// nil if no trait has more than 0.7 of it, or that trait was common before: had half of the weight, or up to three quarters and not
// far more of what came in addition.
func (t *Traits) largestTrait(since trace.Time, weight func(*request.Metrics) float64) (best *Trait, part, before float64) {
	const most = 0.7
	part = most
	for i := range t.asked {
		trait := &t.asked[i]
		had, has := t.added(trait, since, weight)
		if has = min(1, has); (1-has)*had > (1-most)*(1-had) || had > 0.75 {
			continue
		}
		if has > part || best != nil && has == part && had < before {
			best, part, before = trait, has, had
		}
	}
	return best, part, before
}

// added returns the share of the weight that a trait had before a time, and its share of the weight in excess of the
// earlier rate after it.
func (t *Traits) added(trait *Trait, since trace.Time, weight func(*request.Metrics) float64) (had, has float64) {
	with, all, longer := t.sides(trait, since, weight)
	more := all[1] - all[0]*longer
	if all[0] == 0 || longer == 0 || more <= 0 {
		return 1, 0
	}
	return with[0] / all[0], (with[1] - with[0]*longer) / more
}

// sides returns the weight of the requests with a trait, and of all, before and after a time, and how many times as long as before it the
// time after it is; 0 if there is none on one side.
func (t *Traits) sides(trait *Trait, since trace.Time, weight func(*request.Metrics) float64) (with, all [2]float64, longer float64) {
	first, last := since, since
	for i := range cause.Each(t.list) {
		r := &t.set.Requests[t.list[i].Request]
		start, n := r.Start, weight(&r.Metrics)
		first, last = min(first, start), max(last, start)
		side := 0
		if start >= since {
			side = 1
		}
		all[side] += n
		if trait.in[i] {
			with[side] += n
		}
	}
	if first < since && last > since {
		longer = float64(last-since) / float64(since-first)
	}
	return with, all, longer
}
