package reader

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// eventArgs is the field of a TrackEvent that holds typed arguments.
const eventArgs = 4715

var eventRules = []rule{{3, varintField}, {4, repeatedBytes}, {9, varintField}, {10, varintField}, {11, varintField},
	{30, varintField}, {36, repeatedVarint}, {42, repeatedVarint}, {44, fixedField}, {54, varintField}, {eventArgs, bytesField}}

// fieldsOf are the allowed fields for each kind of event.
var fieldsOf = [...][]protowire.Number{
	Begin:   {3, 4, 9, 10, 11, 36, 42, 54, eventArgs},
	End:     {9, 11, 42},
	Instant: {4, 9, 10, 11, eventArgs},
	Counter: {9, 11, 30, 44},
}

// trackEvent reads a TrackEvent into d.event.
func (d *decoder) trackEvent(b []byte) {
	d.fields = d.parse(d.fields[:0], b, eventRules)
	f := d.fields
	d.args = d.args[:0]
	d.event = Event{Kind: f.number(9), Time: d.now, Track: f.number(11), Opens: d.event.Opens[:0], Ends: d.event.Ends[:0]}
	e := &d.event
	counter, known := d.tracks[e.Track]
	switch {
	case !known:
		d.fail("event on track %d, which is not declared", e.Track)
	case e.Kind < Begin || e.Kind > Counter || (e.Kind == Counter) != counter:
		d.fail("event of type %d on track %d", e.Kind, e.Track)
	}
	if d.err != nil {
		return
	}
	for _, x := range f {
		if !slices.Contains(fieldsOf[e.Kind], x.number) {
			d.fail("an event of type %d with field %d", e.Kind, x.number)
		}
	}
	switch e.Kind {
	case Begin, Instant:
		e.Name = d.lookup(eventNames, f.number(10))
	case Counter:
		e.Value = d.value(f)
		return
	}
	e.Category, e.Correlation = d.optional(f.find(3), categories), d.optional(f.find(54), correlations)
	for _, x := range f {
		switch x.number {
		case 36:
			e.Opens = append(e.Opens, x.num)
		case 42:
			e.Ends = append(e.Ends, x.num)
		}
	}
	d.arguments(f)
}

// value returns the value of a sample, which must have one.
func (d *decoder) value(f fields) float64 {
	integer, double := f.find(30), f.find(44)
	switch {
	case (integer == nil) == (double == nil):
		d.fail("a sample without a value, or with two values")
		return 0
	case integer != nil:
		return float64(int64(integer.num))
	}
	return math.Float64frombits(double.num)
}

// optional resolves an interned string that may be missing, but not empty.
func (d *decoder) optional(x *field, table int) string {
	if x == nil {
		return ""
	}
	s := d.lookup(table, x.num)
	if s == "" {
		d.fail("field %d is there and empty", x.number)
	}
	return s
}

// arguments reads the arguments of an event with fields f.
func (d *decoder) arguments(f fields) {
	n := 0
	for _, x := range f {
		switch x.number {
		case 4:
			n++
		case eventArgs:
			d.event.Typed = d.typed(x.data)
		}
	}
	at := d.room(n)
	i := at
	for _, x := range f {
		if x.number == 4 {
			a := d.annotation(x.data, true)
			d.args[i] = a
			i++
		}
	}
	d.event.Args = d.args[at:i:i]
}

// room appends n arguments and returns the index of the first. They may move while nested arguments are read,
// so slice them afterward.
func (d *decoder) room(n int) (at int) {
	at = len(d.args)
	d.args = slices.Grow(d.args, n)[:at+n]
	return at
}

var annotationRules = []rule{{1, varintField}, {2, varintField}, {3, varintField}, {4, varintField}, {5, fixedField}, {6, bytesField},
	{11, repeatedBytes}, {12, repeatedBytes}, {17, varintField}}

// kindOf is the kind of value in a field of a DebugAnnotation.
var kindOf = map[protowire.Number]trace.ArgKind{2: trace.ArgBool, 3: trace.ArgUint, 4: trace.ArgInt, 5: trace.ArgFloat, 6: trace.ArgString,
	11: trace.ArgDict, 12: trace.ArgArray, 17: trace.ArgString}

// annotation reads a DebugAnnotation, which must have one value. Elements of arrays have no name.
func (d *decoder) annotation(b []byte, named bool) (a Arg) {
	mark := len(d.fields)
	d.fields = d.parse(d.fields, b, annotationRules)
	f := d.fields[mark:]
	defer func() { d.fields = d.fields[:mark] }()
	if has := len(f) > 0 && f[0].number == 1; has != named {
		d.fail("an argument without a name, or an element of an array with one")
		return a
	}
	if named {
		a.Name = d.lookup(argNames, f[0].num)
		if f = f[1:]; a.Name == "" {
			d.fail("argument without a name")
		}
	}
	if len(f) == 0 {
		d.fail("argument %q has no value", a.Name)
		return a
	}
	number := f[0].number
	a.Kind = kindOf[number]
	for _, x := range f[1:] {
		if x.number != number {
			d.fail("argument %q holds fields %d and %d", a.Name, number, x.number)
		}
	}
	switch number {
	case 6:
		a.Text = f[0].data
		d.valid(a.Text)
	case 17:
		if d.lookup(argStrings, f[0].num); d.err == nil {
			a.Text = d.texts[f[0].num-1]
		}
	case 11, 12:
		at := d.room(len(f))
		for i, x := range f {
			e := d.annotation(x.data, number == 11)
			d.args[at+i] = e
		}
		a.Elems = d.args[at : at+len(f) : at+len(f)]
	default:
		a.Bits = f[0].num
	}
	return a
}
