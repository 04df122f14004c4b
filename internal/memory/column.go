package memory

import "unsafe"

// A Column is a growing table. From columnRows values on it grows without copying and without garbage. T must
// suit [Make]; the zero value is empty.
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

// Len returns the number of values.
func (c *Column[T]) Len() int {
	if len(c.chunks) == 0 {
		return 0
	}
	last := len(c.chunks) - 1
	return last<<columnBits + len(c.chunks[last])
}

// At returns value i, 0 <= i < Len(). Its address is final once the column has columnRows values.
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
		c.chunks = append(c.chunks, nil) // grows by doubling: many inputs are small
		return
	}
	var v T
	Touch(columnRows * int(unsafe.Sizeof(v)))
	c.chunks = append(c.chunks, Make[T](columnRows)[:0])
}

// Extend adds n zero values and returns them as slices. Several goroutines may set the values of different
// calls.
func (c *Column[T]) Extend(n int) (added [][]T) {
	if len(c.chunks) == 0 {
		c.chunks = append(c.chunks, nil)
	}
	if first := c.chunks[0]; cap(first) < columnRows { // allocate all of it: values must keep their addresses
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

// Pieces returns the number of pieces of a column, which several goroutines may work on.
func (c *Column[T]) Pieces() int { return len(c.chunks) }

// Piece returns the range [from, to) of the values of piece k.
func (c *Column[T]) Piece(k int) (from, to int) {
	from = k << columnBits
	return from, from + len(c.chunks[k])
}

// GiveUp frees the values of a piece, which must not be used again.
func (c *Column[T]) GiveUp(k int) {
	Free(c.chunks[k])
	c.chunks[k] = nil
}

// Free frees all values, and leaves an empty column.
func (c *Column[T]) Free() {
	for k := range c.chunks {
		c.GiveUp(k)
	}
	c.chunks = nil
}
