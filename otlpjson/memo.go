package otlpjson

import (
	"bytes"
	"hash/maphash"

	"github.com/sgtrace/sgtrace/trace"
)

// A memo remembers attributes by their JSON text: most of what spans say of their process, they
// all say in the same words, and to read, intern and look for secrets once is enough.
type memo struct {
	seed  maphash.Seed
	slots []remembered
	last  *remembered // the attribute before
}

// remembered is an attribute as the file has it, and as a list of arguments.
type remembered struct {
	text []byte
	list trace.ArgList
	next *remembered // that followed when this one was last met, and often follows again
}

// A memo has room for all that the processes of a large service say of themselves: an attribute
// takes the place of another one now and then. Long ones are prompts, which differ.
const (
	memoSlots    = 1 << 10
	longestInOne = 256 // bytes
)

func newMemo() memo {
	return memo{seed: maphash.MakeSeed(), slots: make([]remembered, memoSlots), last: &remembered{}}
}

// slot returns where the attribute at b[i] is remembered, or may be, and where it ends; nil if
// that takes a closer look.
func (m *memo) slot(b []byte, i int) (at *remembered, end int) {
	text := b[i:min(len(b), i+longestInOne)]
	end = bytes.IndexByte(text, '}') + 1
	if end == 0 || end == len(text) || text[end] != '}' {
		return nil, 0
	}
	end++
	return &m.slots[maphash.Bytes(m.seed, text[:end])%memoSlots], i + end
}

// follows returns what is remembered of the attribute at b[i] if it is the one that followed the
// attribute before when that was last met, so that nobody has to search; nil otherwise.
func (m *memo) follows(b []byte, i int) *remembered {
	next := m.last.next
	if next == nil || len(next.text) == 0 || !bytes.HasPrefix(b[i:], next.text) {
		return nil
	}
	m.last = next
	return next
}

// attribute reads the attribute at b[i] and appends it to list.
func (r *recorder) attribute(b []byte, i int, list *trace.ArgList) (next int, err error) {
	if at := r.memo.follows(b, i); at != nil {
		*list = append(*list, at.list...)
		return i + len(at.text), nil
	}
	at, end := r.memo.slot(b, i)
	if at != nil {
		r.memo.last.next, r.memo.last = at, at
		if string(at.text) == string(b[i:end]) {
			*list = append(*list, at.list...)
			return end, nil
		}
	}
	start, notes := len(*list), r.notes
	if next = r.usualKeyValue(b, i, list); next == 0 {
		next, err = r.keyValue(b, i, list, 0)
	}
	if at != nil && err == nil && next == end && r.notes == notes {
		at.text, at.list = append(at.text[:0], b[i:end]...), append(at.list[:0], (*list)[start:]...)
	}
	return next, err
}
