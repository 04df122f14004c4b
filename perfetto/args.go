package perfetto

import (
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// annotations appends the arguments of an event: its own, then those of its
// subject. Of several with one name the first is written, so that an event's
// own wins ([trace.Args.Find] picks the same one); trace_processor would keep
// the last.
func (e *encoder) annotations(b []byte, own trace.ArgsID, about trace.SubjectID) []byte {
	if own == 0 {
		return append(b, e.shared[about]...)
	}
	e.round++
	e.typed = e.typed[:0]
	clash := false
	for list := e.t.Args.Raw(own); len(list) > 0; {
		var a trace.Arg
		a, list = e.t.Args.Next(list)
		if !e.first(a.Key) {
			continue
		}
		clash = clash || e.inShared[a.Key]
		if !e.typedArg(a) {
			b = e.annotation(b, a, e.name(a.Key), false)
		}
	}
	if clash {
		b = e.subjectAnnotations(b, about)
	} else {
		b = append(b, e.shared[about]...)
	}
	return e.appendTyped(b)
}

// subjectAnnotations appends those arguments of a subject whose names are not
// taken.
func (e *encoder) subjectAnnotations(b []byte, about trace.SubjectID) []byte {
	for a := range e.t.Args.All(e.t.Subjects[about].Args) {
		if e.first(a.Key) {
			b = e.annotation(b, a, e.name(a.Key), true)
		}
	}
	return b
}

// first reports whether an argument occurs for the first time in this round.
func (e *encoder) first(key trace.Sym) bool {
	if e.seen[key] == e.round {
		return false
	}
	e.seen[key] = e.round
	return true
}

// name returns the ref of an argument's name, 0 if it is missing.
func (e *encoder) name(key trace.Sym) nameRef {
	if ref := e.argNames.get(key); ref != 0 {
		return ref
	}
	return e.newName(key)
}

func (e *encoder) newName(key trace.Sym) (ref nameRef) {
	if !e.defines {
		e.missing = true
		return 0
	}
	ref, e.defs = e.argNames.define(e.defs, key, e.names[key])
	return ref
}

// annotation appends one argument as a DebugAnnotation of an event. shared means that it belongs to a subject.
func (e *encoder) annotation(b []byte, a trace.Arg, name nameRef, shared bool) []byte {
	if tag, v, ok := number(a); ok {
		b = append(b, eventAnnotation<<3|wireBytes, byte(2+sizeOf(uint64(name.id()))+sizeOf(v)), annotationNameIID<<3|wireVarint)
		b = append(appendVarint(b, uint64(name.id())), tag)
		return appendVarint(b, v)
	}
	b, at := open(b, eventAnnotation)
	b = appendUint(b, annotationNameIID, uint64(name.id()))
	if shared || a.Kind != trace.ArgArray && a.Kind != trace.ArgDict {
		b = e.value(b, a, root{a.Key, name, shared})
	} else {
		b = e.composite(b, a, root{a.Key, name, shared})
	}
	return shut(b, at)
}

// number returns the key byte and the value of the field that holds an
// argument, if that is a varint.
func number(a trace.Arg) (key byte, v uint64, ok bool) {
	switch a.Kind {
	case trace.ArgInt:
		return annotationInt<<3 | wireVarint, uint64(a.Int()), true
	case trace.ArgUint:
		return annotationUint<<3 | wireVarint, a.Uint(), true
	case trace.ArgBool:
		if a.Bool() {
			v = 1
		}
		return annotationBool<<3 | wireVarint, v, true
	}
	return 0, 0, false
}

// root is the argument of an event that contains a value. Strings are interned among those of their root.
type root struct {
	key    trace.Sym
	name   nameRef
	shared bool
}

// value appends the fields that hold the value of an argument.
func (e *encoder) value(b []byte, a trace.Arg, r root) []byte {
	switch a.Kind {
	case trace.ArgString:
		return e.text(b, a.Bytes(), r)
	case trace.ArgFloat:
		return appendDouble(b, annotationDouble, a.Float())
	case trace.ArgArray:
		return e.array(b, a, r)
	case trace.ArgDict:
		return e.dict(b, a, r)
	}
	key, v, _ := number(a)
	return appendVarint(append(b, key), v)
}

// array appends the elements of an array. An empty one would vanish in
// trace_processor, so it is written as text.
func (e *encoder) array(b []byte, a trace.Arg, r root) []byte {
	before := len(b)
	for part := range a.Elems {
		if key, v, ok := number(part); ok {
			b = append(b, annotationArray<<3|wireBytes, byte(1+sizeOf(v)), key)
			b = appendVarint(b, v)
			continue
		}
		var at int
		b, at = open(b, annotationArray)
		b = shut(e.value(b, part, r), at)
	}
	if len(b) == before {
		b = appendString(b, annotationString, "[]")
	}
	return b
}

// dict appends the entries of a dictionary; see array for empty ones.
func (e *encoder) dict(b []byte, a trace.Arg, r root) []byte {
	before := len(b)
	for part := range a.Elems {
		var at int
		b, at = open(b, annotationDict)
		b = appendUint(b, annotationNameIID, uint64(e.name(part.Key).id()))
		b = shut(e.value(b, part, r), at)
	}
	if len(b) == before {
		b = appendString(b, annotationString, "{}")
	}
	return b
}

// text appends a string, interned if that may save space.
func (e *encoder) text(b, s []byte, r root) []byte {
	if len(s) >= minValue {
		id := e.valuesOf(r).get(r.name.id(), s)
		if id == 0 && (r.shared || r.name&inlineValues == 0) {
			id = e.defineValue(s, r)
		}
		if id != 0 {
			return appendUint(b, annotationStringIID, uint64(id))
		}
	}
	if !utf8.Valid(s) {
		return appendString(b, annotationString, validUTF8(string(s)))
	}
	return appendString(b, annotationString, s)
}

// valuesOf returns the table for looking up a value.
func (e *encoder) valuesOf(r root) *values {
	if r.shared {
		return e.sharedValues
	}
	return e.values
}

func (e *encoder) defineValue(s []byte, r root) (id uint32) {
	if !e.defines {
		e.missing = true
		return 0
	}
	e.lastValue++
	text, count := e.valuesOf(r).add(r.name.id(), s, e.lastValue)
	e.defs = appendDefinition(e.defs, internedArgStrings, e.lastValue, text)
	if count >= maxValues && !r.shared {
		e.argNames.inline(r.key)
	}
	return e.lastValue
}
