package perfetto

import (
	"cmp"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// annotations appends the arguments of an event: its own, then those of its
// subject. Of several with one name the first is written, so that an event's
// own wins ([trace.Args.Find] picks the same one); trace_processor would keep
// the last.
func (e *encoder) annotations(b []byte, own trace.ArgsID, about trace.SubjectID) []byte {
	e.round++
	clash := false
	for a := range e.t.Args.All(own) {
		if e.seen[a.Key] != e.round {
			e.seen[a.Key] = e.round
			clash = clash || e.sharedNames[a.Key]
			b = e.annotation(b, eventAnnotation, a, a.Key, false)
		}
	}
	if about == 0 {
		return b
	}
	if clash {
		return e.subjectAnnotations(b, about)
	}
	if e.shared[about] == nil {
		e.round++
		e.shared[about] = e.subjectAnnotations(make([]byte, 0, sharedSize), about)
	}
	return append(b, e.shared[about]...)
}

// sharedSize is the usual size of a subject's encoded arguments in bytes.
const sharedSize = 32

// subjectAnnotations appends those arguments of a subject whose names are not
// taken.
func (e *encoder) subjectAnnotations(b []byte, about trace.SubjectID) []byte {
	for a := range e.t.Args.All(e.t.Subjects[about].Args) {
		if e.seen[a.Key] != e.round {
			e.seen[a.Key] = e.round
			b = e.annotation(b, eventAnnotation, a, a.Key, true)
		}
	}
	return b
}

// annotation appends one argument as a DebugAnnotation in the given field. Its
// strings are interned among those of root, the argument that it is part of;
// shared says that many events carry it.
func (e *encoder) annotation(b []byte, field int, a trace.Arg, root trace.Sym, shared bool) []byte {
	b, at := open(b, field)
	if field != annotationArray {
		// trace_processor refuses an argument without a name.
		name := cmp.Or(e.names[a.Key], "_")
		b = appendUint(b, annotationNameIID, e.argNames.id(a.Key, name, &e.defs))
	}
	switch a.Kind {
	case trace.ArgString:
		b = e.annotationText(b, a.Bytes(), root, shared)
	case trace.ArgInt:
		b = appendUint(b, annotationInt, uint64(a.Int()))
	case trace.ArgUint:
		b = appendUint(b, annotationUint, a.Uint())
	case trace.ArgFloat:
		b = appendDouble(b, annotationDouble, a.Float())
	case trace.ArgBool:
		v := uint64(0)
		if a.Bool() {
			v = 1
		}
		b = appendUint(b, annotationBool, v)
	case trace.ArgArray, trace.ArgDict:
		b = e.elements(b, a, root, shared)
	}
	return shut(b, at)
}

// elements appends the parts of an array or a dictionary. An empty one would
// vanish in trace_processor, so it is written as text.
func (e *encoder) elements(b []byte, a trace.Arg, root trace.Sym, shared bool) []byte {
	field, empty := annotationArray, "[]"
	if a.Kind == trace.ArgDict {
		field, empty = annotationDict, "{}"
	}
	before := len(b)
	for part := range a.Elems {
		b = e.annotation(b, field, part, root, shared)
	}
	if len(b) == before {
		b = appendString(b, annotationString, empty)
	}
	return b
}

func (e *encoder) annotationText(b, s []byte, root trace.Sym, shared bool) []byte {
	if id := e.argStrings.id(root, s, shared, &e.defs); id != 0 {
		return appendUint(b, annotationStringIID, id)
	}
	if !utf8.Valid(s) {
		return appendString(b, annotationString, validUTF8(string(s)))
	}
	return appendString(b, annotationString, s)
}
