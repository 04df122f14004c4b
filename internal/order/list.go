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
