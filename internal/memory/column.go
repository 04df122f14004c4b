package memory

import "unsafe"

// A Column is a growing table. From columnRows on it grows without copying and without garbage. It is for
// what [Make] is for; the zero value is empty.
type Column[T any] struct{ chunks [][]T }

const (
	columnBits = 12
	columnRows = 1 << columnBits
)

// Len is how many values there are.
func (c *Column[T]) Len() int {
	if len(c.chunks) == 0 {
		return 0
	}
	last := len(c.chunks) - 1
	return last<<columnBits + len(c.chunks[last])
}

// At returns value i, 0 <= i < Len(), which stays where it is once the first columnRows values are there.
func (c *Column[T]) At(i int) *T { return &c.chunks[i>>columnBits][i&(columnRows-1)] }

// Push adds a value.
func (c *Column[T]) Push(v T) {
	last := len(c.chunks) - 1
	switch {
	case last < 0:
		c.chunks = append(c.chunks, nil) // grows as it has to: many inputs are small
		last++
	case len(c.chunks[last]) == columnRows:
		Touch(columnRows * int(unsafe.Sizeof(v)))
		c.chunks = append(c.chunks, Make[T](columnRows)[:0])
		last++
	}
	c.chunks[last] = append(c.chunks[last], v)
}

// Pieces is into how many pieces a column is divided, which several goroutines may look at.
func (c *Column[T]) Pieces() int { return len(c.chunks) }

// Piece returns the first value of a piece, and the one behind its last.
func (c *Column[T]) Piece(k int) (from, to int) {
	from = k << columnBits
	return from, from + len(c.chunks[k])
}

// GiveUp gives up the values of a piece: nobody asks for them again.
func (c *Column[T]) GiveUp(k int) { c.chunks[k] = nil }
