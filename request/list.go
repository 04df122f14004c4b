package request

import (
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// A Text is a text of a request or a part, such as its ID, which [Set.Text] returns. A million
// requests have a million of them, which cannot move to a file as strings. 0 is "".
type Text trace.ArgsID

// Text returns a text.
func (s *Set) Text(t Text) string {
	if t == 0 {
		return ""
	}
	return string(s.texts.Raw(trace.ArgsID(t)))
}

// NewText keeps a text.
func (s *Set) NewText(text string) Text {
	if text == "" {
		return 0
	}
	if s.texts == nil {
		s.texts = trace.NewArgs()
	}
	return Text(s.texts.Put(unsafe.Slice(unsafe.StringData(text), len(text)))) // which copies it
}

// A list is a part of a table of indexes.
type list struct{ from, to int32 }

// ThreadsOf returns the indexes of the threads of p, by start. They must not be modified.
func (s *Set) ThreadsOf(p *Part) []int { return s.threads[p.threads.from:p.threads.to:p.threads.to] }

// PartsOf returns the indexes of the parts of r: router, prefill, decode, sender. They must not
// be modified.
func (s *Set) PartsOf(r *Request) []int { return s.parts[r.parts.from:r.parts.to:r.parts.to] }

// OwnThreads notes which threads are of which part, in the order that sort gives them.
func (s *Set) OwnThreads(sort func(threads []int)) {
	for p := range s.AllParts() {
		s.Parts[p].threads = list{}
	}
	for t := range s.AllThreads() {
		s.Parts[s.Threads[t].Part].threads.to++
	}
	n := int32(0)
	for p := range s.AllParts() {
		l := &s.Parts[p].threads
		n, l.from, l.to = n+l.to, n, n
	}
	s.threads = memory.Make[int](len(s.Threads))
	for t := range s.AllThreads() {
		l := &s.Parts[s.Threads[t].Part].threads
		s.threads[l.to] = t
		l.to++
	}
	for p := range s.AllParts() {
		sort(s.ThreadsOf(&s.Parts[p]))
	}
}

// AddRequest adds a request of some parts.
func (s *Set) AddRequest(r Request, parts ...int) {
	r.parts.from = int32(len(s.parts))
	s.parts = memory.Append(s.parts, parts...)
	r.parts.to = int32(len(s.parts))
	s.Requests = memory.Append(s.Requests, r)
}
