package profilewalk

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say which part of a [profile.Set] is summed up, and how.
type Options struct {
	// ByRank makes one row for every rank and name. Otherwise the events of all ranks are pooled: percentiles are
	// those of all values, not means of means.
	ByRank bool
	// Open keeps ranges that were never closed.
	Open bool
	// From and To keep only events that overlap [From, To]; 0 is open.
	From, To trace.Time

	// For tests; 0 is MaxHeld, joinBatch, maxWaiting.
	Held           int64
	Batch, Waiting int
}

// Keeps reports whether an event overlaps the window.
func (o *Options) Keeps(e *profile.Event) bool {
	return (o.From == 0 || e.End >= o.From) && (o.To == 0 || e.Start <= o.To)
}

// Store returns a new store for samples, with the limit of o or the default one.
func (o *Options) Store() *distribution.Store {
	return &distribution.Store{Limit: cmp.Or(o.Held, distribution.MaxHeld)}
}

// A Key identifies a group of events.
type Key struct {
	Rank int32 // NoRank if ranks are pooled
	Name trace.Sym
	Kind uint8 // style of ranges, 1 for graphs among kernels; less than 1 << kindBits
}

const kindBits = 2

// NoRank stands for all ranks together.
const NoRank = -1

// A ByName has a group of events for every rank, name, and kind of one stream.
type ByName[G any] struct {
	Ranks  []order.Paged[int32] // by rank: index of the group by name and kind, plus one
	Keys   []Key
	Groups []G
}

// NewByName returns an empty ByName for the ranks of a set.
func NewByName[G any](set *profile.Set) *ByName[G] {
	return &ByName[G]{Ranks: make([]order.Paged[int32], len(set.Ranks))}
}

// Of returns the group of a name. It is valid until the next call.
func (b *ByName[G]) Of(rank int32, name trace.Sym, kind uint8) *G {
	at := b.Ranks[rank].At(int64(name)<<kindBits | int64(kind))
	if *at == 0 {
		b.Keys, b.Groups = append(b.Keys, Key{rank, name, kind}), append(b.Groups, *new(G))
		*at = int32(len(b.Groups))
	}
	return &b.Groups[*at-1]
}

// A Member is a group of one stream, with the key of its row.
type Member[K comparable, G any] struct {
	Key  K
	Rank int32
	Part *G
}

// Members returns the groups of all streams.
func Members[G any](opt *Options, streams []*ByName[G]) []Member[Key, G] {
	var all []Member[Key, G]
	for _, s := range streams {
		for i, k := range s.Keys {
			m := Member[Key, G]{k, k.Rank, &s.Groups[i]}
			if !opt.ByRank {
				m.Key.Rank = NoRank
			}
			all = append(all, m)
		}
	}
	return all
}

// Compare orders keys by name, kind, and rank.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Name, o.Name), cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Rank, o.Rank))
}

// A Pool is all groups with one key, which become a row.
type Pool[K comparable, G any] struct {
	Key   K
	Ranks int // number of ranks
	Parts []*G
}

// Pools merges groups with the same key, sorted by compare, which may compare the numbers of symbols.
func Pools[K comparable, G any](all []Member[K, G], compare func(a, b K) int) []Pool[K, G] {
	slices.SortStableFunc(all, func(a, b Member[K, G]) int {
		return cmp.Or(compare(a.Key, b.Key), cmp.Compare(a.Rank, b.Rank))
	})
	var out []Pool[K, G]
	for i, m := range all {
		if i == 0 || all[i-1].Key != m.Key {
			out = append(out, Pool[K, G]{Key: m.Key})
		}
		p := &out[len(out)-1]
		if len(p.Parts) == 0 || all[i-1].Rank != m.Rank {
			p.Ranks++
		}
		p.Parts = append(p.Parts, m.Part)
	}
	return out
}

// Samples returns the settled sample of every part.
func Samples[G any](parts []*G, of func(*G) *distribution.Sample, in *distribution.Store) []*distribution.Sample {
	out := make([]*distribution.Sample, len(parts))
	for i, p := range parts {
		out[i] = of(p)
		out[i].Settle(in)
	}
	return out
}

// MaxWalks is the number of streams that are walked concurrently. It is small because a walk may need much more
// memory than its result.
const MaxWalks = 4

// EachStream calls walk for all streams of a set, several concurrently.
func EachStream(set *profile.Set, walk func(i int, s profile.Stream)) {
	parallel.Few(min(runtime.GOMAXPROCS(0), MaxWalks), len(set.Streams), func(i int) { walk(i, set.Streams[i]) })
}

// nameOfRank returns the name of a rank, or "" if ranks are pooled.
func nameOfRank(set *profile.Set, rank int32) string {
	if rank == NoRank {
		return ""
	}
	return set.Ranks[rank]
}

// A Row has the first columns of rows of sums.
type Row struct {
	Rank  string // "" if ranks are pooled
	Ranks int    // number of ranks with such events
	Name  string

	RankIndex int32
}

// NewRow returns the row of a group that the given number of ranks have.
func NewRow(set *profile.Set, key Key, ranks int) Row {
	return Row{Rank: nameOfRank(set, key.Rank), Ranks: ranks, Name: set.Syms.Name(key.Name), RankIndex: key.Rank}
}

// Compare orders rows by their totals, largest first.
func (r *Row) Compare(o *Row, total, other int64) int {
	return cmp.Or(cmp.Compare(other, total), strings.Compare(r.Name, o.Name), cmp.Compare(r.RankIndex, o.RankIndex))
}
