package order

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

// Sum adds up what of gives for the rows of a table, in order.
func Sum[X any, N int | int32 | int64 | float64](rows []X, of func(*X) N) (sum N) {
	for i := range rows {
		sum += of(&rows[i])
	}
	return sum
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
