package order

// Merge passes what streams hold in one order, in which each of them is by itself. A stream is
// at its first element; next moves it to the one behind, and returns false at the end. before
// compares the elements that two streams are at; of equal ones, any may come first.
func Merge[S any](streams []S, before func(a, b S) bool, next func(S) bool, pass func(S)) {
	heap := streams
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, before, i)
	}
	for len(heap) > 0 {
		pass(heap[0])
		if !next(heap[0]) {
			last := len(heap) - 1
			heap[0], heap = heap[last], heap[:last]
		}
		sink(heap, before, 0)
	}
}

// sink restores the heap below i.
func sink[S any](heap []S, before func(a, b S) bool, i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && before(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
