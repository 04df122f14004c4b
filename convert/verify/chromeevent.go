package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// A chromeEvent is an event as in the file.
type chromeEvent struct {
	ph, cat, name, s, bp string
	id, bind             string // raw JSON
	pid, tid             int64
	ts, dur              int64 // ns
	in, out              bool
	args                 []byte
	has                  int // bits of the members that are present
}

// Members of events, as bits of chromeEvent.has.
const (
	hasPh = 1 << iota
	hasCat
	hasName
	hasPid
	hasTid
	hasTs
	hasDur
	hasID
	hasBind
	hasIn
	hasOut
	hasArgs
	hasS
	hasBp
)

// membersOf lists, for each phase, the members that its events must have, and those that they may have.
var membersOf = map[string]struct{ always, perhaps int }{
	"M": {hasPh | hasName | hasPid | hasArgs, hasTid},
	"X": {hasPh | hasCat | hasName | hasPid | hasTid | hasTs | hasDur, hasArgs | hasBind | hasIn | hasOut},
	"i": {hasPh | hasCat | hasName | hasPid | hasTid | hasTs | hasS, hasArgs},
	"C": {hasPh | hasCat | hasName | hasPid | hasTs | hasArgs, hasID},
	"s": {hasPh | hasCat | hasName | hasPid | hasTid | hasTs | hasID | hasBp, 0},
	"f": {hasPh | hasCat | hasName | hasPid | hasTid | hasTs | hasID | hasBp, 0},
}

// event reads an event.
func (c *chromeFile) event(line []byte) error {
	var err error
	if c.args, err = members(line, c.args[:0]); err != nil {
		return err
	}
	var e chromeEvent
	for _, x := range c.args {
		if err := e.set(x.key, x.value); err != nil {
			return fmt.Errorf("%s: %w", x.key, err)
		}
	}
	rule, ok := membersOf[e.ph]
	if !ok || e.has&rule.always != rule.always || e.has&^(rule.always|rule.perhaps) != 0 {
		return fmt.Errorf("an event of phase %q lacks members, or has too many", e.ph)
	}
	switch e.ph {
	case "M":
		return c.about(&e)
	case "C":
		return c.counter(&e)
	}
	track := c.lanes[[2]int64{e.pid, e.tid}]
	if track == 0 {
		return fmt.Errorf("an event of process %d, thread %d, which no track of the model is", e.pid, e.tid)
	}
	switch e.ph {
	case "X":
		return c.complete(track, &e)
	case "i":
		return c.point(track, &e)
	}
	return c.arrow(track, &e)
}

// set reads one member, which must not repeat.
func (e *chromeEvent) set(key string, value []byte) (err error) {
	member := 0
	switch key {
	case "ph":
		member, err = hasPh, setText(&e.ph, value)
	case "cat":
		member, err = hasCat, setText(&e.cat, value)
	case "name":
		member, err = hasName, setText(&e.name, value)
	case "pid":
		member = hasPid
		e.pid, err = strconv.ParseInt(string(value), 10, 64)
	case "tid":
		member = hasTid
		e.tid, err = strconv.ParseInt(string(value), 10, 64)
	case "ts":
		member = hasTs
		e.ts, err = nanoseconds(value)
	case "dur":
		member = hasDur
		e.dur, err = nanoseconds(value)
	case "id":
		member, e.id = hasID, string(value)
	case "bind_id":
		member, e.bind = hasBind, string(value)
	case "flow_in":
		member, e.in = hasIn, string(value) == "true"
	case "flow_out":
		member, e.out = hasOut, string(value) == "true"
	case "args":
		member, e.args = hasArgs, value
	case "s":
		member, err = hasS, setText(&e.s, value)
	case "bp":
		member, err = hasBp, setText(&e.bp, value)
	default:
		return errors.New("not a member that events have")
	}
	if err == nil && e.has&member != 0 {
		return errors.New("it repeats")
	}
	e.has |= member
	return err
}

func setText(to *string, value []byte) (err error) {
	*to, err = text(value)
	return err
}

// nanoseconds parses microseconds with three decimals, and returns ns.
func nanoseconds(value []byte) (int64, error) {
	whole, fraction, ok := bytes.Cut(value, []byte("."))
	if !ok || len(fraction) != 3 {
		return 0, errors.New("not microseconds with three decimals")
	}
	return strconv.ParseInt(string(whole)+string(fraction), 10, 64)
}

// at returns want if e's time is how the file writes it, or else e's own time. Times of long traces are
// rounded, so they can't be compared directly.
func (c *chromeFile) at(e *chromeEvent, want trace.Time) trace.Time {
	if c.time(want) == e.ts {
		return want
	}
	return c.base + trace.Time(e.ts)
}

// complete reads a slice.
func (c *chromeFile) complete(track trace.TrackID, e *chromeEvent) error {
	at := c.base + trace.Time(e.ts)
	if r := c.tracks[track].slices; r.next < r.end {
		at = c.at(e, c.t.Slices[r.next].Time)
	}
	id, err := c.slice(track, at, e.name)
	if err != nil {
		return err
	}
	s := &c.t.Slices[id]
	cat := "slice"
	if s.Cat != 0 {
		cat = valid(c.names[s.Cat])
	}
	switch dur := c.time(s.End()) - c.time(s.Time); {
	case e.dur != dur:
		return c.differ(track, "slice", s.Name, s.Time, "lasts %d ns in the file and %d ns in the model", e.dur, dur)
	case e.cat != cat:
		return c.differ(track, "slice", s.Name, s.Time, "has the category %q in the file and %q in the model", e.cat, cat)
	case e.has&hasBind != 0 && e.in == e.out, e.has&hasBind == 0 && (e.in || e.out), e.in && e.has&hasOut != 0, e.out && e.has&hasIn != 0:
		return c.differ(track, "slice", s.Name, s.Time, "bears an arrow that neither begins nor ends there")
	case e.out:
		if _, ok := c.outs[e.bind]; ok {
			return c.differ(track, "slice", s.Name, s.Time, "begins arrows %s, as another one does", e.bind)
		}
		c.outs[e.bind] = id
	case e.in:
		c.ins = append(c.ins, bind{e.bind, id})
	}
	if err := c.arguments(e.args, s.Args, c.t.Subjects[c.t.About[id]].Args); err != nil {
		return c.differ(track, "slice", s.Name, s.Time, "has other arguments: %v", err)
	}
	return nil
}

func (c *chromeFile) point(track trace.TrackID, e *chromeEvent) error {
	at := c.base + trace.Time(e.ts)
	if r := c.tracks[track].instants; r.next < r.end {
		at = c.at(e, c.t.Instants[r.next].Time)
	}
	x, err := c.instant(track, at, e.name)
	if err != nil {
		return err
	}
	if e.cat != "instant" || e.s != "t" {
		return c.differ(track, "instant", x.Name, x.Time, "has the category %q and the scope %q in the file", e.cat, e.s)
	}
	if err := c.arguments(e.args, x.Args, 0); err != nil {
		return c.differ(track, "instant", x.Name, x.Time, "has other arguments: %v", err)
	}
	return nil
}

// counter reads a sample of a counter.
func (c *chromeFile) counter(e *chromeEvent) error {
	key := chromeCounter{pid: e.pid, name: e.name}
	if e.has&hasID != 0 {
		id, err := text([]byte(e.id))
		if err != nil {
			return err
		}
		if key.id, err = strconv.Atoi(id); err != nil || key.id == 0 {
			return fmt.Errorf("id %q of a counter", id)
		}
	}
	track := c.counters[key]
	if track == 0 {
		return fmt.Errorf("a sample of counter %q of process %d, which no track of the model is", e.name, e.pid)
	}
	args, err := members(e.args, nil)
	if err != nil {
		return err
	}
	unit := "value"
	if sym := c.t.Tracks[track].Unit; sym != 0 {
		unit = valid(c.names[sym])
	}
	if len(args) != 1 || args[0].key != unit || e.cat != "counter" {
		return fmt.Errorf("a sample of counter %q of process %d has another unit than the model: want %q", e.name, e.pid, unit)
	}
	value, err := float(args[0].value)
	if err != nil {
		return err
	}
	at := c.base + trace.Time(e.ts)
	if r := c.tracks[track].samples; r.next < r.end {
		at = c.at(e, c.t.Samples[r.next].Time)
	}
	return c.sample(track, at, value)
}

// arrow reads an end of an arrow. Arrow i of the model has the ID i+1. An arrow that points back in time is
// written in reverse, as viewers draw it.
func (c *chromeFile) arrow(track trace.TrackID, e *chromeEvent) error {
	id, err := strconv.ParseUint(e.id, 10, 32)
	if err != nil || id == 0 || id > uint64(len(c.flows)) {
		return fmt.Errorf("arrow %s is in the file, but not in the model", e.id)
	}
	flow, begun := &c.t.Flows[id-1], &c.flows[id-1]
	from, to := c.forward(flow)
	want, before := from, trace.SliceID(0)
	if e.ph == "f" {
		want, before = to, from
	}
	s := &c.t.Slices[want]
	name := "flow"
	if flow.Name != 0 {
		name = valid(c.names[flow.Name])
	}
	if *begun != before || s.Track != track || c.time(s.Time) != e.ts || e.name != name || e.cat != "flow" || e.bp != "e" {
		return c.differ(s.Track, "arrow", flow.Name, s.Time, "has another end (%s) in the file", e.ph)
	}
	*begun = want
	if e.ph == "f" {
		*begun = flowDone
	}
	return nil
}

// forward returns the ends of an arrow in the order in which a file has them.
func (c *chromeFile) forward(f *trace.Flow) (from, to trace.SliceID) {
	if c.t.Slices[f.To].Time < c.t.Slices[f.From].Time {
		return f.To, f.From
	}
	return f.From, f.To
}

// bound compares the arrows stored on slices with the model's arrows that have no events of their own.
func (c *chromeFile) bound() error {
	type pair struct{ from, to trace.SliceID }
	compare := func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	var have, want []pair
	for _, b := range c.ins {
		have = append(have, pair{c.outs[b.id], b.to})
	}
	for i := range c.flows {
		if c.flows[i] == 0 {
			from, to := c.forward(&c.t.Flows[i])
			want = append(want, pair{from, to})
			c.flows[i] = flowDone
		}
	}
	slices.SortFunc(have, compare)
	slices.SortFunc(want, compare)
	starts := map[trace.SliceID]bool{}
	for i := range max(len(have), len(want)) {
		switch {
		case i >= len(have) || i < len(want) && compare(want[i], have[i]) < 0:
			s := &c.t.Slices[want[i].from]
			return c.differ(s.Track, "slice", s.Name, s.Time, "begins an arrow to %s that is not in the file", c.place(c.t.Slices[want[i].to].Track))
		case i >= len(want) || compare(want[i], have[i]) != 0:
			s := &c.t.Slices[have[i].to]
			return c.differ(s.Track, "slice", s.Name, s.Time, "ends an arrow in the file that is not in the model")
		}
		starts[have[i].from] = true
	}
	if len(starts) != len(c.outs) {
		return fmt.Errorf("%d slices begin arrows in the file that end nowhere", len(c.outs)-len(starts))
	}
	return nil
}

// arguments compares the arguments of an event; a nil object means none.
func (c *chromeFile) arguments(object []byte, own, shared trace.ArgsID) error {
	var list []member
	if object != nil {
		var err error
		if list, err = members(object, nil); err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("the file has an empty list")
		}
	}
	next := 0
	for a := range c.expected(own, shared) {
		if next == len(list) || !c.is(list[next].key, a.Key) {
			return fmt.Errorf("%q is missing", c.names[a.Key])
		}
		if err := c.value(list[next].value, a); err != nil {
			return fmt.Errorf("%q: %w", c.names[a.Key], err)
		}
		next++
		c.Args++
	}
	if next < len(list) {
		return fmt.Errorf("%q is in the file, but not in the model", list[next].key)
	}
	return nil
}

// value compares the value of an argument.
func (c *chromeFile) value(have []byte, a trace.Arg) error {
	switch a.Kind {
	case trace.ArgArray, trace.ArgDict:
		return c.composite(have, a)
	case trace.ArgFloat:
		if v, err := float(have); err != nil || math.Float64bits(v) != math.Float64bits(a.Float()) && v == v {
			return fmt.Errorf("%s in the file, %v in the model", cut(string(have)), a.Float())
		}
		return nil
	case trace.ArgString:
		s, err := text(have)
		if err != nil || s != string(a.Bytes()) && s != valid(string(a.Bytes())) {
			return fmt.Errorf("%s in the file, %q in the model", cut(string(have)), cut(string(a.Bytes())))
		}
		return nil
	}
	want := ""
	switch a.Kind {
	case trace.ArgInt:
		want = strconv.FormatInt(a.Int(), 10)
	case trace.ArgUint: // above the int64 range as text, since readers have no larger integers
		if want = strconv.FormatUint(a.Uint(), 10); a.Uint() > math.MaxInt64 {
			want = `"` + want + `"`
		}
	case trace.ArgBool:
		want = strconv.FormatBool(a.Bool())
	}
	if string(have) != want {
		return fmt.Errorf("%s in the file, %s in the model", cut(string(have)), want)
	}
	return nil
}

// composite compares an array or a dictionary.
func (c *chromeFile) composite(have []byte, a trace.Arg) error {
	isDict := a.Kind == trace.ArgDict
	if len(have) < 2 || (have[0] == '{') != isDict || (have[0] == '[') == isDict {
		return errors.New("it is of another type in the file")
	}
	i := 1
	for e := range a.Elems {
		if i >= len(have)-1 {
			return errors.New("elements are missing in the file")
		}
		end := valueEnd(have, i)
		if isDict {
			key, err := text(have[i:end])
			if err != nil || !c.is(key, e.Key) {
				return fmt.Errorf("%s in the file, %q in the model", cut(string(have[i:end])), c.names[e.Key])
			}
			i = end + 1
			end = valueEnd(have, i)
		}
		if err := c.value(have[i:end], e); err != nil {
			return err
		}
		i = end
		if have[i] == ',' {
			i++
		}
	}
	if i != len(have)-1 {
		return errors.New("it has more elements in the file")
	}
	return nil
}

// float parses a number; JSON has no NaN or infinities, so those are strings.
func float(value []byte) (float64, error) {
	if s, err := text(value); err == nil {
		switch s {
		case "NaN", "+Inf", "-Inf":
			return strconv.ParseFloat(s, 64)
		}
		return 0, errors.New("a text in the place of a number")
	}
	return strconv.ParseFloat(string(value), 64)
}
