package order

import (
	"cmp"
	"iter"
	"slices"
)

// Each returns what of gives for each of a list, in order; nil of nothing.
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

// EachRow is [Each] for the rows of a table, which stay where they are.
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

// Only returns those of a list for which is holds, in order; nil if it holds for none.
func Only[X any](list []X, is func(X) bool) (some []X) {
	for _, x := range list {
		if is(x) {
			some = append(some, x)
		}
	}
	return some
}

// Count returns for how many of a list is holds.
func Count[X any](list []X, is func(X) bool) (n int) {
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// CountRows is [Count] for the rows of a table, which stay where they are.
func CountRows[X any](rows []X, is func(*X) bool) (n int) {
	for i := range rows {
		if is(&rows[i]) {
			n++
		}
	}
	return n
}

// A Number is what can be added up.
type Number interface {
	~int | ~int32 | ~int64 | ~float32 | ~float64
}

// Total adds numbers up, in their order.
func Total[N Number](list []N) (sum N) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// Mean returns the mean of a list; NaN of none.
func Mean(list []float64) float64 { return Total(list) / float64(len(list)) }

// Sum adds up what of gives for each of a list, in order.
func Sum[X any, N Number](list []X, of func(X) N) (sum N) {
	for _, x := range list {
		sum += of(x)
	}
	return sum
}

// SumRows is [Sum] for the rows of a table, which stay where they are.
func SumRows[X any, N Number](rows []X, of func(*X) N) (sum N) {
	for i := range rows {
		sum += of(&rows[i])
	}
	return sum
}

// Earlier returns the earlier of two times, of which the known one is 0 as long as there is none.
func Earlier[T ~int64](known, t T) T {
	if known == 0 || t < known {
		return t
	}
	return known
}

// Set returns a map in which those of a list are true.
func Set[K comparable](list []K) map[K]bool {
	set := make(map[K]bool, len(list))
	for _, k := range list {
		set[k] = true
	}
	return set
}

// With returns a list with x, which is appended unless the list has it.
func With[X comparable](list []X, x X) []X {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Distinct sorts a list and returns each of its values once, in the place of the list.
func Distinct[X cmp.Ordered](list []X) []X {
	slices.Sort(list)
	return slices.Compact(list)
}

// Groups are values by key, in the order in which their keys came. The zero value has none.
type Groups[K comparable, V any] struct {
	Keys  []K
	List  []V
	index map[K]int
}

// Of returns the value of a key, which is zero at first. It stays in place until the next new key.
func (g *Groups[K, V]) Of(key K) *V { return &g.List[g.At(key)] }

// At returns the place of a key, which is the next one at first.
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

// Add appends a value to those of a key.
func Add[K comparable, V any](g *Groups[K, []V], key K, v V) {
	of := g.Of(key)
	*of = append(*of, v)
}

// Runs yields the parts of a list whose rows are all like their first one, in order.
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

// Memo returns m[key], which make makes when it is first asked for.
func Memo[K comparable, V any](m map[K]V, key K, make func() V) V {
	v, known := m[key]
	if !known {
		v = make()
		m[key] = v
	}
	return v
}

// At returns the place of a key's row in a list, as index has it. A new key's row, which row makes, is the next one.
func At[K comparable, I ~int | ~int32 | ~uint32, V any](index map[K]I, list *[]V, key K, row func() V) I {
	i, known := index[key]
	if !known {
		i = I(len(*list))
		index[key], *list = i, append(*list, row())
	}
	return i
}
