package fleet

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/trace"
)

// Confidence is how sure it is that a subject is found more often than its peers.
type Confidence string

const (
	Certain   Confidence = "certain"
	Likely    Confidence = "likely"
	Maybe     Confidence = "may be chance"
	TooLittle Confidence = "not enough data" // not even if it had been found in all runs
)

// Largest probabilities of chance at which an offender is certain, and likely.
const (
	certainP = 0.001
	likelyP  = 0.05
)

// An Offender is a subject that was found late or slow in at least one run.
type Offender struct {
	Subject     // as described by the last run that found it
	Found       int
	Could       int // runs in which it could have been found
	Expected    float64
	P           float64 // see [offenders]
	Sure        Confidence
	Needed      int            // least number of runs to be sure, if it goes on being found
	First, Last trace.Time     // begin of the first and the last run that found it; 0 if unknown
	Kinds       []finding.Kind // kinds of findings, the most frequent first
	Ranks       []string       // ranks that ran on a GPU when it was found, in order of time
	// GPUTime and RequestTime are what findings about it cost, ns: the sum over runs of the costliest finding in each.
	GPUTime, RequestTime float64
	// Because is, for a host, a GPU on it that each of these runs found; nil if there is none.
	Because *Subject
}

// repeats reports whether the subject is found more often than by chance.
func (o *Offender) repeats() bool { return o.Sure == Certain || o.Sure == Likely }

// A record sums up what runs say about a subject.
type record struct {
	Offender
	chances []float64 // probability of being found by chance, for each run in which it could have been
	kinds   map[finding.Kind]int
	on      map[key]int // number of runs that found a GPU on the host, by GPU
}

// offenders compares how often each subject is found with its peers. If a run finds f of n subjects that it could
// find, and chance decides which, each is found with probability f / n. The sum over runs has a Poisson binomial
// distribution; P is the probability that any subject of the level is found as often as this one, by Holm's method.
func offenders(runs []*Run) (list []Offender) {
	var records order.Groups[key, *record]
	for _, r := range runs {
		found, could := r.count()
		for _, k := range slices.SortedFunc(maps.Keys(r.seen), key.compare) {
			x, of := r.seen[k], records.Of(k)
			if *of == nil {
				*of = &record{kinds: map[finding.Kind]int{}, on: map[key]int{}, Offender: Offender{Subject: x.Subject}}
			}
			(*of).add(r, x, float64(found[k.level])/float64(max(1, could[k.level])))
		}
	}
	for level := range Hosts + 1 {
		list = append(list, judge(&records, level)...)
	}
	slices.SortStableFunc(list, func(a, b Offender) int { return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(b.Found, a.Found)) })
	return list
}

// count returns how many subjects of each level were found, and how many could have been.
func (r *Run) count() (found, could [Hosts + 1]int) {
	for k, x := range r.seen {
		if x.could {
			could[k.level]++
		}
		if len(x.kinds) > 0 {
			found[k.level]++
		}
	}
	return found, could
}

// add adds what a run says.
func (o *record) add(r *Run, x *sighting, chance float64) {
	if x.could {
		o.Could++
		o.chances = append(o.chances, chance)
		o.Expected += chance
	}
	if len(x.kinds) == 0 {
		return
	}
	if o.Found == 0 {
		o.First = r.From
	}
	o.Subject, o.Last = x.Subject, r.From
	o.Found++
	o.GPUTime += x.gpuTime
	o.RequestTime += x.requestTime
	for _, kind := range x.kinds {
		o.kinds[kind]++
	}
	for k := range x.on {
		o.on[k]++
	}
	if x.Rank != "" && !slices.Contains(o.Ranks, x.Rank) {
		o.Ranks = append(o.Ranks, x.Rank)
	}
}

// judge returns the subjects of a level that were found, with the confidence in each.
func judge(records *order.Groups[key, *record], level Level) (list []Offender) {
	var all []*record
	var p, least []float64
	for i, o := range records.List {
		if records.Keys[i].level == level && o.Could > 0 {
			all = append(all, o)
			p = append(p, significance.AtLeast(o.Found, o.chances))
			least = append(least, significance.AtLeast(o.Could, o.chances))
		}
	}
	p = significance.Holm(p)
	for i, o := range all {
		if o.Found == 0 {
			continue
		}
		o.P, o.Needed = p[i], o.Could
		switch {
		case o.P <= certainP:
			o.Sure = Certain
		case o.P <= likelyP:
			o.Sure = Likely
		case least[i]*float64(len(all)) > likelyP:
			o.Sure, o.Needed = TooLittle, o.enough(len(all))
		default:
			o.Sure = Maybe
		}
		o.Kinds = order.Largest(o.kinds)
		o.Because = o.always(records)
		list = append(list, o.Offender)
	}
	return list
}

// enough returns how many runs it takes until being found in all of them is significant among
// that many peers; at least one more than there are.
func (o *record) enough(peers int) int {
	least := o.Could + 1
	if chance := o.Expected / float64(o.Could); chance < 1 {
		least = max(least, int(math.Ceil(math.Log(likelyP/float64(peers))/math.Log(chance))))
	}
	return least
}

// always returns the GPU that was found in each run that found its host; nil if there is none, or several.
func (o *record) always(records *order.Groups[key, *record]) (gpu *Subject) {
	for k, n := range o.on {
		switch {
		case n < o.Found:
		case gpu != nil:
			return nil
		default:
			gpu = &(*records.Of(k)).Subject
		}
	}
	return gpu
}
