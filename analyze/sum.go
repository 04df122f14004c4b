package analyze

import (
	"cmp"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// SumOptions say what of a [profile.Set] is summed up, and how.
type SumOptions struct {
	// ByRank makes one row for every rank and name. Otherwise the events of all
	// ranks are pooled: percentiles are those of all values, not means of means.
	ByRank bool
	// Names are the names to keep: of kernels, calls, operations or ranges. nil is
	// all. Shares are of what is kept.
	Names *regexp.Regexp
	// Open keeps ranges that were never closed.
	Open bool
	// From and To bound what is kept to events that overlap [From, To]; 0 is open.
	From, To trace.Time

	// For tests; 0 is MaxHeld, joinBatch, maxWaiting.
	held           int64
	batch, waiting int
}

// keeps tells whether an event lies in the window.
func (o *SumOptions) keeps(e *profile.Event) bool {
	return (o.From == 0 || e.End >= o.From) && (o.To == 0 || e.Start <= o.To)
}

func (o *SumOptions) store() *distribution.Store {
	return &distribution.Store{Limit: cmp.Or(o.held, distribution.MaxHeld)}
}

// A sumKey says what a group of events is of.
type sumKey struct {
	rank int32 // noRank where ranks are pooled
	name trace.Sym
	kind uint8 // style of ranges, 1 for graphs among kernels
}

const noRank = -1

// A byName has a group of events for every rank, name and kind of one stream.
type byName[G any] struct {
	syms   *trace.Symbols
	names  *regexp.Regexp
	ranks  []paged[int32] // by rank: index of the group by name and kind, plus one
	keys   []sumKey
	groups []G
}

func newByName[G any](set *profile.Set, opt *SumOptions) *byName[G] {
	return &byName[G]{syms: set.Syms, names: opt.Names, ranks: make([]paged[int32], len(set.Ranks))}
}

// leftOut stands for the group of a name that is not kept.
const leftOut = -1

// of returns the group of a name, nil if the name is not kept. It is valid until the
// next call.
func (b *byName[G]) of(rank int32, name trace.Sym, kind uint8) *G {
	at := b.ranks[rank].at(int64(name)<<1 | int64(kind))
	if *at == 0 {
		*at = b.add(sumKey{rank, name, kind})
	}
	if *at == leftOut {
		return nil
	}
	return &b.groups[*at-1]
}

func (b *byName[G]) add(key sumKey) int32 {
	if b.names != nil && !b.names.MatchString(b.syms.Name(key.name)) {
		return leftOut
	}
	var group G
	b.keys, b.groups = append(b.keys, key), append(b.groups, group)
	return int32(len(b.groups))
}

// A member is a group of one stream, under the key of the row that it goes into.
type member[K comparable, G any] struct {
	key  K
	rank int32
	part *G
}

// members returns the groups of all streams.
func members[G any](opt *SumOptions, streams []*byName[G]) []member[sumKey, G] {
	var all []member[sumKey, G]
	for _, s := range streams {
		for i, k := range s.keys {
			m := member[sumKey, G]{k, k.rank, &s.groups[i]}
			if !opt.ByRank {
				m.key.rank = noRank
			}
			all = append(all, m)
		}
	}
	return all
}

func (k sumKey) compare(o sumKey) int {
	return cmp.Or(cmp.Compare(k.name, o.name), cmp.Compare(k.kind, o.kind), cmp.Compare(k.rank, o.rank))
}

// A pool is what becomes a row: all groups of one key.
type pool[K comparable, G any] struct {
	key   K
	ranks int // how many there are
	parts []*G
}

// pools brings groups of one key together. Their order is that of compare, which may
// go by the numbers of symbols.
func pools[K comparable, G any](all []member[K, G], compare func(a, b K) int) []pool[K, G] {
	slices.SortStableFunc(all, func(a, b member[K, G]) int {
		return cmp.Or(compare(a.key, b.key), cmp.Compare(a.rank, b.rank))
	})
	var out []pool[K, G]
	for i, m := range all {
		if i == 0 || all[i-1].key != m.key {
			out = append(out, pool[K, G]{key: m.key})
		}
		p := &out[len(out)-1]
		if len(p.parts) == 0 || all[i-1].rank != m.rank {
			p.ranks++
		}
		p.parts = append(p.parts, m.part)
	}
	return out
}

// samples returns one sample of every part.
func samples[G any](parts []*G, of func(*G) *distribution.Sample, in *distribution.Store) []*distribution.Sample {
	out := make([]*distribution.Sample, len(parts))
	for i, p := range parts {
		out[i] = of(p)
		out[i].Settle(in)
	}
	return out
}

// maxWalks is how many streams are walked at once: what is held while one is walked
// may be much more than what remains of it.
const maxWalks = 4

// eachStream calls walk for all streams of a set, several at once.
func eachStream(set *profile.Set, walk func(i int, s profile.Stream)) {
	next := make(chan int, len(set.Streams))
	for i := range set.Streams {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWalks, len(set.Streams)) {
		wg.Go(func() {
			for i := range next {
				walk(i, set.Streams[i])
			}
		})
	}
	wg.Wait()
}

// nameOfRank returns the name of a rank, "" where ranks are pooled.
func nameOfRank(set *profile.Set, rank int32) string {
	if rank == noRank {
		return ""
	}
	return set.Ranks[rank]
}

// A sumRow is what rows of sums begin with.
type sumRow struct {
	Rank  string // "" where ranks are pooled
	Ranks int    // how many have such events
	Name  string

	rankIndex int32
}

func newSumRow(set *profile.Set, key sumKey, ranks int) sumRow {
	return sumRow{Rank: nameOfRank(set, key.rank), Ranks: ranks, Name: set.Syms.Name(key.name), rankIndex: key.rank}
}

// compare orders rows by their total, the largest first.
func (r *sumRow) compare(o *sumRow, total, other int64) int {
	return cmp.Or(cmp.Compare(other, total), strings.Compare(r.Name, o.Name), cmp.Compare(r.rankIndex, o.rankIndex))
}
