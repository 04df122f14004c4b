package order

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
