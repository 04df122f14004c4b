package host

import "slices"

// Frames are what one thread did. The zero value is nothing. They are held packed, in about a
// third of their size.
type Frames struct {
	runs []*run
	// window are the last ones of the last run. They are packed once no frame that comes is
	// likely to belong before them.
	window []Frame
}

// A run is the frames that [Read] passed together.
type run struct {
	packedFrames
	walk uint8
}

// windowSize is how many frames a frame may come too late by before its run has to be sorted
// as a whole: calls and ranges are recorded when they end, after those that they are around.
const windowSize = 256

// Add adds a frame, in the order of [Read]; those of stacks of calls come behind.
func (t *Frames) Add(f Frame) {
	walk := walks[f.Kind]
	if n := len(t.runs); n == 0 || t.runs[n-1].walk != walk {
		t.pack(0)
		t.runs = append(t.runs, &run{walk: walk})
	}
	if t.window = append(t.window, f); len(t.window) >= 2*windowSize {
		t.pack(windowSize)
	}
}

// pack packs the frames in the window, in order, but for the last few.
func (t *Frames) pack(keep int) {
	if len(t.window) == 0 {
		return
	}
	sortFrames(t.window)
	n := len(t.window) - keep
	last := t.runs[len(t.runs)-1]
	for i := range t.window[:n] {
		last.add(&t.window[i])
	}
	t.window = slices.Delete(t.window, 0, n)
}

// Join moves the frames of the same thread in another stream here.
func (t *Frames) Join(o *Frames) {
	t.pack(0)
	o.pack(0)
	t.runs = append(t.runs, o.runs...)
	*o = Frames{}
}

// Settle gives up all frames, as a queue in order.
func (t *Frames) Settle() *Queue {
	t.pack(0)
	q := &Queue{}
	for _, r := range t.runs {
		q.left += r.count
		q.runs = append(q.runs, r.unpack())
	}
	*t = Frames{}
	return q
}

// A Queue passes the frames of a thread in order: by their start, the outer one of two first.
type Queue struct {
	runs []*unpacking // that are not at their end, in the order they were added in
	left int
}

// Len returns how many frames are left.
func (q *Queue) Len() int { return q.left }

// Next moves the next frames into a buffer, as many as are left and fit, and returns them.
func (q *Queue) Next(into []Frame) []Frame {
	into = into[:min(len(into), q.left)]
	for i := range into {
		first := 0
		for k := 1; k < len(q.runs); k++ {
			if compareFrames(q.runs[k].head, q.runs[first].head) < 0 {
				first = k
			}
		}
		r := q.runs[first]
		into[i] = r.head
		if !r.next() {
			q.runs = slices.Delete(q.runs, first, first+1)
		}
	}
	q.left -= len(into)
	return into
}

// sortFrames puts frames in order. Equal ones stay as they were.
func sortFrames(frames []Frame) {
	if !slices.IsSortedFunc(frames, compareFrames) {
		slices.SortStableFunc(frames, compareFrames)
	}
}
