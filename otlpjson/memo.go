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
}

// remembered is an attribute as the file has it, and as a list of arguments.
type remembered struct {
	text []byte
	list trace.ArgList
}

// A memo has room for all that the processes of a large service say of themselves: an attribute
// takes the place of another one now and then. Long ones are prompts, which differ.
const (
	memoSlots    = 1 << 10
	longestInOne = 256 // bytes
)

func newMemo() memo { return memo{maphash.MakeSeed(), make([]remembered, memoSlots)} }

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

// attribute reads the attribute at b[i] and appends it to list.
func (r *recorder) attribute(b []byte, i int, list *trace.ArgList) (next int, err error) {
	at, end := r.memo.slot(b, i)
	if at != nil && string(at.text) == string(b[i:end]) {
		*list = append(*list, at.list...)
		return end, nil
	}
	start, notes := len(*list), r.notes
	next, err = r.keyValue(b, i, list, 0)
	if at != nil && err == nil && next == end && r.notes == notes {
		at.text, at.list = append(at.text[:0], b[i:end]...), append(at.list[:0], (*list)[start:]...)
	}
	return next, err
}
