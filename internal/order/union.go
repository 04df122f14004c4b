package order

import "iter"

// A Union puts numbers into groups: those that are joined, directly or through others, are in one.
type Union []int32

// NewUnion returns n numbers, each in a group of its own.
func NewUnion(n int) Union {
	u := make(Union, n)
	for i := range u {
		u[i] = int32(i)
	}
	return u
}

// Find returns the lowest number in the group of i.
func (u Union) Find(i int) int {
	at := int32(i)
	for u[at] != at {
		u[at] = u[u[at]]
		at = u[at]
	}
	return int(at)
}

// Join makes the groups of all given numbers one.
func (u Union) Join(numbers ...int) {
	for _, j := range numbers[1:] {
		i, j := u.Find(numbers[0]), u.Find(j)
		u[max(i, j)] = int32(min(i, j))
	}
}

// Groups returns the number of groups.
func (u Union) Groups() (n int) {
	for i := range u {
		if int(u[i]) == i {
			n++
		}
	}
	return n
}

// All yields the groups, ordered by lowest member. Each is valid until the next.
func (u Union) All() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		end := make([]int32, len(u)+1) // of each group, by its lowest member
		for i := range u {
			end[u.Find(i)+1]++
		}
		for i := range u {
			end[i+1] += end[i]
		}
		members := make([]int32, len(u))
		next := end // position of a group's next member; finally, the group's end
		for i := range u {
			root := u.Find(i)
			members[next[root]] = int32(i)
			next[root]++
		}
		var group []int
		from := int32(0)
		for root := range u {
			group = group[:0]
			for _, i := range members[from:end[root]] {
				group = append(group, int(i))
			}
			if from = end[root]; len(group) > 0 && !yield(group) {
				return
			}
		}
	}
}
