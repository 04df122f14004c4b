package trace

import "slices"

// MapText replaces the texts in the arguments of all events of t, at any depth, by what
// f makes of them. key is the name of the argument, or of the entry, that holds the text.
func MapText(t *Trace, f func(key, text string) string) {
	m := textMapper{old: t.Args, names: t.Syms.Names(), f: f}
	t.Args = NewArgs()
	t.Subjects = slices.Clone(t.Subjects) // other windows of one trace have them, too
	m.put = t.Args.Appender()
	for i := range t.Slices {
		t.Slices[i].Args = m.list(t.Slices[i].Args)
	}
	for i := range t.Instants {
		t.Instants[i].Args = m.list(t.Instants[i].Args)
	}
	for i := range t.Subjects {
		t.Subjects[i].Args = m.list(t.Subjects[i].Args)
	}
}

type textMapper struct {
	old   *Args
	names []string
	put   *ArgsAppender
	f     func(key, text string) string
	buf   ArgList
}

// list returns the mapped list of id. What it extends becomes a part of it.
func (m *textMapper) list(id ArgsID) ArgsID {
	if id == 0 {
		return 0
	}
	m.buf = m.buf[:0]
	for a := range m.old.All(id) {
		m.buf = m.add(m.buf, a, a.Key)
	}
	return m.put.Put(m.buf)
}

// add appends an argument, which is called by key.
func (m *textMapper) add(l ArgList, a Arg, key Sym) ArgList {
	switch a.Kind {
	case ArgString:
		return l.String(a.Key, m.f(m.names[key], string(a.Bytes())))
	case ArgInt:
		return l.Int(a.Key, a.Int())
	case ArgUint:
		return l.Uint(a.Key, a.Uint())
	case ArgFloat:
		return l.Float(a.Key, a.Float())
	case ArgBool:
		return l.Bool(a.Key, a.Bool())
	}
	var inner ArgList
	for e := range a.Elems {
		of := key
		if a.Kind == ArgDict {
			of = e.Key
		}
		inner = m.add(inner, e, of)
	}
	if a.Kind == ArgDict {
		return l.Dict(a.Key, inner)
	}
	return l.Array(a.Key, inner)
}
