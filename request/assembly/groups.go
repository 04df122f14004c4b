package assembly

import (
	"iter"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
)

// hashedSize is roughly how many bytes of a part sharing touches.
const hashedSize = 512

// sharing yields the groups of at least two equal numbers below n, each sorted and valid until the next.
// Equal numbers must have equal hashes; a number for which ok is false is in no group.
func sharing(n int, hash func(i int) (h uint64, ok bool), same func(i, j int) bool) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		list := parallel.Gather(n, hashedSize, func(list []order.Key, from, to int) []order.Key {
			for i := from; i < to; i++ {
				if h, ok := hash(i); ok {
					list = append(list, order.Key{Time: h, Index: uint32(i)})
				}
			}
			return list
		})
		list, scratch := order.ByTime(list, memory.Make[order.Key](len(list)))
		memory.Free(scratch)
		groups := parallel.Gather(len(list), hashedSize, func(groups []int32, from, to int) []int32 {
			for from > 0 && from < to && list[from].Time == list[from-1].Time {
				from++ // belongs to the previous range
			}
			for behind := from; from < to; from = behind {
				for behind = from + 1; behind < len(list) && list[behind].Time == list[from].Time; behind++ {
				}
				if behind > from+1 {
					groups = appendGroups(groups, list[from:behind], same)
				}
			}
			return groups
		})
		memory.Free(list)
		defer memory.Free(groups)
		var group []int
		for rest := groups; len(rest) > 0; rest = rest[1+len(group):] {
			group = group[:0]
			for _, i := range rest[1 : 1+rest[0]] {
				group = append(group, int(i))
			}
			if !yield(group) {
				return
			}
		}
	}
}

// appendGroups appends the groups among numbers with one hash: the size of each group, then its members.
func appendGroups(groups []int32, keys []order.Key, same func(i, j int) bool) []int32 {
	rest := order.Each(keys, func(x order.Key) int { return int(x.Index) })
	for len(rest) > 1 {
		at, others := len(groups), rest[:0]
		groups = append(groups, 1, int32(rest[0]))
		first := rest[0]
		for _, i := range rest[1:] {
			if same(first, i) {
				groups = append(groups, int32(i))
				groups[at]++
			} else { // same hash by chance
				others = append(others, i)
			}
		}
		if groups[at] == 1 {
			groups = groups[:at]
		}
		rest = others
	}
	return groups
}

// sameText is sharing by text; those without a text are in no group.
func (b *builder) sameText(n int, text func(i int) request.Text) iter.Seq[[]int] {
	return sharing(n, func(i int) (uint64, bool) { return order.MixText(b.Text(text(i))), text(i) != 0 },
		func(i, j int) bool { return b.Text(text(i)) == b.Text(text(j)) })
}
