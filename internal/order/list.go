package order

import (
	"cmp"
	"iter"
	"slices"
)

// Each returns of(x) for each x of a list, in order; nil for an empty list.
func Each[X, Y any](list []X, of func(X) Y) []Y {
	if len(list) == 0 {
		return nil
	}
	all := make([]Y, len(list))
	for i, x := range list {
		all[i] = of(x)
	}
	return all
}

// EachRow is [Each] for the rows of a table, which it does not copy.
func EachRow[X, Y any](rows []X, of func(*X) Y) []Y {
	if len(rows) == 0 {
		return nil
	}
	all := make([]Y, len(rows))
	for i := range rows {
		all[i] = of(&rows[i])
	}
	return all
}

// Only returns the elements for which is holds, in order; nil if there are none.
func Only[X any](list []X, is func(X) bool) (some []X) {
	for _, x := range list {
		if is(x) {
			some = append(some, x)
		}
	}
	return some
}

// OnlyRows is [Only] for the rows of a table, of which it copies only these.
func OnlyRows[X any](rows []X, is func(*X) bool) (some []X) {
	for i := range rows {
		if is(&rows[i]) {
			some = append(some, rows[i])
		}
	}
	return some
}

// Count returns the number of elements for which is holds.
func Count[X any](list []X, is func(X) bool) (n int) {
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// CountRows is [Count] for the rows of a table, which it does not copy.
func CountRows[X any](rows []X, is func(*X) bool) (n int) {
	for i := range rows {
		if is(&rows[i]) {
			n++
		}
	}
	return n
}

// A Number can be added up.
type Number interface {
	~int | ~int32 | ~int64 | ~float32 | ~float64
}

// Total returns the sum of a list, added in order.
func Total[N Number](list []N) (sum N) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// Mean returns the mean of a list; NaN if it is empty.
func Mean(list []float64) float64 { return Total(list) / float64(len(list)) }

// Sum returns the sum of of(x) for each x of a list, added in order.
func Sum[X any, N Number](list []X, of func(X) N) (sum N) {
	for _, x := range list {
		sum += of(x)
	}
	return sum
}

// SumRows is [Sum] for the rows of a table, which it does not copy.
func SumRows[X any, N Number](rows []X, of func(*X) N) (sum N) {
	for i := range rows {
		sum += of(&rows[i])
	}
	return sum
}

// Earlier returns the earlier of two times, where known is 0 as long as there is none.
func Earlier[T ~int64](known, t T) T {
	if known == 0 || t < known {
		return t
	}
	return known
}

// Set returns a map in which every element of a list is true.
func Set[K comparable](list []K) map[K]bool {
	set := make(map[K]bool, len(list))
	for _, k := range list {
		set[k] = true
	}
	return set
}

// With returns a list with x appended, unless the list has it.
func With[X comparable](list []X, x X) []X {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Distinct sorts a list in place and returns its distinct values.
func Distinct[X cmp.Ordered](list []X) []X {
	slices.Sort(list)
	return slices.Compact(list)
}

// Groups are values by key, in the order in which their keys first appeared. The zero value is empty.
type Groups[K comparable, V any] struct {
	Keys  []K
	List  []V
	index map[K]int
}

// Of returns the value of a key, zero if the key is new. The pointer is valid until the next new key.
func (g *Groups[K, V]) Of(key K) *V { return &g.List[g.At(key)] }

// At returns the index of a key, which is the next one if the key is new.
func (g *Groups[K, V]) At(key K) int {
	i, known := g.index[key]
	if !known {
		if g.index == nil {
			g.index = map[K]int{}
		}
		i = len(g.List)
		g.index[key], g.Keys, g.List = i, append(g.Keys, key), append(g.List, *new(V))
	}
	return i
}

// Add appends a value to the values of a key.
func Add[K comparable, V any](g *Groups[K, []V], key K, v V) {
	of := g.Of(key)
	*of = append(*of, v)
}

// Runs splits a list into runs whose rows are all like their first one, and yields them in order.
func Runs[X any](list []X, alike func(first, x *X) bool) iter.Seq[[]X] {
	return func(yield func([]X) bool) {
		for from := 0; from < len(list); {
			to := from + 1
			for to < len(list) && alike(&list[from], &list[to]) {
				to++
			}
			if !yield(list[from:to]) {
				return
			}
			from = to
		}
	}
}

// Memo returns m[key], and sets it to make() if it is missing.
func Memo[K comparable, V any](m map[K]V, key K, make func() V) V {
	v, known := m[key]
	if !known {
		v = make()
		m[key] = v
	}
	return v
}

// At returns the index of a key's row in a list, as recorded in index. It appends row() for a new key.
func At[K comparable, I ~int | ~int32 | ~uint32, V any](index map[K]I, list *[]V, key K, row func() V) I {
	i, known := index[key]
	if !known {
		i = I(len(*list))
		index[key], *list = i, append(*list, row())
	}
	return i
}
