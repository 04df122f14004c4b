package memory

import "unsafe"

// A Column is a growing table. From columnRows on it grows without copying and without garbage. It is for
// what [Make] is for; the zero value is empty.
type Column[T any] struct{ chunks [][]T }

const (
	columnBits = 12
	columnRows = 1 << columnBits
)

// MakeColumn returns a column of n zero values.
func MakeColumn[T any](n int) Column[T] {
	var c Column[T]
	for ; n > 0; n -= columnRows {
		c.chunks = append(c.chunks, Make[T](min(n, columnRows)))
	}
	return c
}

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
func (c *Column[T]) Push(v T) { *c.Next() = v }

// Next adds a value that the caller sets.
func (c *Column[T]) Next() *T {
	last := len(c.chunks) - 1
	if last < 0 || len(c.chunks[last]) == columnRows {
		c.addChunk()
		last++
	}
	chunk := &c.chunks[last]
	n := len(*chunk)
	if n == cap(*chunk) {
		var v T
		*chunk = append(*chunk, v)
	}
	*chunk = (*chunk)[:n+1]
	return &(*chunk)[n]
}

func (c *Column[T]) addChunk() {
	if len(c.chunks) == 0 {
		c.chunks = append(c.chunks, nil) // grows as it has to: many inputs are small
		return
	}
	var v T
	Touch(columnRows * int(unsafe.Sizeof(v)))
	c.chunks = append(c.chunks, Make[T](columnRows)[:0])
}

// Extend adds n zero values, which one goroutine may set while others set those of other calls. It
// returns them as the slices that they lie in.
func (c *Column[T]) Extend(n int) (added [][]T) {
	if len(c.chunks) == 0 {
		c.chunks = append(c.chunks, nil)
	}
	if first := c.chunks[0]; cap(first) < columnRows { // it grows no more, as values must stay where they are
		c.chunks[0] = append(Make[T](columnRows)[:0], first...)
	}
	for n > 0 {
		last := &c.chunks[len(c.chunks)-1]
		from := len(*last)
		if from == columnRows {
			c.addChunk()
			continue
		}
		to := min(from+n, columnRows)
		*last = (*last)[:to]
		added = append(added, (*last)[from:to:to])
		n -= to - from
	}
	return added
}

// Pieces is into how many pieces a column is divided, which several goroutines may look at.
func (c *Column[T]) Pieces() int { return len(c.chunks) }

// Piece returns the first value of a piece, and the one behind its last.
func (c *Column[T]) Piece(k int) (from, to int) {
	from = k << columnBits
	return from, from + len(c.chunks[k])
}

// GiveUp gives up the values of a piece: nobody asks for them again.
func (c *Column[T]) GiveUp(k int) {
	Free(c.chunks[k])
	c.chunks[k] = nil
}

// Free gives up all values, and leaves an empty column.
func (c *Column[T]) Free() {
	for k := range c.chunks {
		c.GiveUp(k)
	}
	c.chunks = nil
}
