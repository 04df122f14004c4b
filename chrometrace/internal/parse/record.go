package parse

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// categoryOf returns the category of an event, as far as it was read.
func (p *parser) categoryOf(ev *event) *catEntry {
	if ev.category == nil {
		if ev.seen&hasCat == 0 {
			return p.noCat
		}
		ev.category = p.category(ev.cat, ev.catEscaped)
	}
	return ev.category
}

func (p *parser) nameOf(ev *event) *name {
	if ev.nm == nil {
		ev.nm = p.name(ev.name, ev.nameEscaped)
	}
	return ev.nm
}

// keepsArgs reports whether the arguments of the event are to be encoded, judging by the members before them.
func (p *parser) keepsArgs() bool {
	f, ev := &p.opt.Filter, &p.ev
	switch {
	case ev.ph == 'C':
		return true // its values are arguments
	case f.IndexOnly || f.Args == profile.ArgsNone:
		return false
	case p.plain:
		return true
	}
	return !(ev.seen&hasName != 0 && !p.nameOf(ev).match || ev.seen&hasCat != 0 && !p.categoryOf(ev).args ||
		ev.seen&hasDur != 0 && ev.dur < f.MinDur)
}

// putArgs stores the encoded arguments.
func (p *parser) putArgs() trace.ArgsID {
	if p.opt.Filter.Args == profile.ArgsNone || !p.categoryOf(&p.ev).args {
		return 0
	}
	return p.args.Put(p.list)
}

// finish records the event that was read.
func (p *parser) finish() {
	ev := &p.ev
	p.settleNotes()
	switch ev.ph {
	case 'X', 'B', 'E', 'b', 'n', 'e', 'S', 'T', 'F', 'p', 'i', 'I', 'R', 'C', 's', 't', 'f':
	case 'M':
		p.out.Chrome = true
		p.metadata()
		return
	default:
		p.noPhase()
		return
	}
	p.out.Chrome = true
	if !ev.timed || !IsTime(ev.ts) || ev.dur > maxDur {
		p.out.Report(trace.TraceNoTime, p.at(), 1)
		return
	}
	if ev.dur < 0 {
		p.out.Report(trace.TraceNegativeDuration, p.at(), 1)
		ev.dur = 0
	}
	if ev.ph != 'X' {
		ev.dur = 0
	}
	p.out.Total++
	end := ev.ts + trace.Time(ev.dur)
	p.window(end)
	switch {
	case ev.ts == 0:
		if p.out.Zero.N == 0 {
			p.out.ZeroAt = p.at()
		}
		p.out.Zero.Add(0, end)
	case ev.ts >= AbsoluteFrom:
		p.out.Absolute.Add(ev.ts, end)
	default:
		p.out.Relative.Add(ev.ts, end)
	}
	switch ev.ph {
	case 'X':
		p.complete()
	case 'i', 'I', 'R':
		p.instant(p.row(p.categoryOf(ev).lane))
	case 'C':
		p.counter()
	case 's', 't', 'f':
		p.arrow()
	default:
		p.span()
	}
}

// window updates the end of the recording with the end of the event, if that is reliable: an annotation, an
// operator, or a Python function may be closed later.
func (p *parser) window(end trace.Time) {
	w, ev := &p.out.Window, &p.ev
	if cat := p.categoryOf(ev); cat.lane == LaneThread && cat.role != RoleLaunch && cat.role != roleComm {
		end = ev.ts
	}
	w.Seen = max(w.Seen, end)
	if ev.ph == 'i' && string(ev.name) == windowEnd {
		w.Told = max(w.Told, ev.ts)
	}
}

// placeless are the phases that have no place on a timeline: objects, memory dumps, contexts, clocks, samples.
// Any other letter is one with a flipped bit.
const placeless = "NODvVcP()"

// noPhase reports an event without a phase, or with one that the model cannot represent, such as the life of an
// object.
func (p *parser) noPhase() {
	ev := &p.ev
	switch {
	case ev.ph != 0 && strings.IndexByte(placeless, ev.ph) < 0:
		p.out.Report(trace.TraceNoSuchPhase, p.at(), 1, ev.ph)
	case ev.ph != 0:
		p.out.Report(trace.TraceUnknownPhase, p.at(), 1, ev.ph)
	case ev.seen&hasTs != 0:
		p.out.Report(trace.TraceNoPhase, p.at(), 1)
	case p.b[jsonscan.Space(p.b, ev.at+1)] == '}': // an empty object, which loses nothing
	default:
		p.out.Report(trace.TraceNotAnEvent, p.at(), 1)
	}
}

// at returns the offset in the input at which the event begins.
func (p *parser) at() int64 { return p.base + int64(p.ev.at) }

// row returns the row of the event.
func (p *parser) row(l Lane) int32 { return p.rows.find(&p.out, l, p.ev.pid, p.ev.tid) }

// keeps reports whether the filter keeps the event, ignoring its duration, which may be unknown yet.
func (p *parser) keeps() bool {
	if p.plain {
		return true
	}
	f, ev := &p.opt.Filter, &p.ev
	return !f.IndexOnly && p.categoryOf(ev).match && p.nameOf(ev).match && p.overlaps(ev.ts, ev.ts+trace.Time(ev.dur))
}

// overlaps reports whether an event is within the bounds of the filter.
func (p *parser) overlaps(from, to trace.Time) bool {
	if from < AbsoluteFrom {
		from, to = from+trace.Time(p.clock), to+trace.Time(p.clock)
	}
	return p.opt.Filter.Overlaps(from, to)
}

// complete records an event of phase X.
func (p *parser) complete() {
	ev := &p.ev
	cat, nm := p.categoryOf(ev), p.nameOf(ev)
	if (cat.role == roleOp || cat == p.noCat) && nm.isStep() { // as before 2022, or by Ascend
		cat = p.category([]byte(profile.AnnotationCategory), false)
		ev.category = cat
	}
	row, correlation := p.row(cat.lane), int64(0)
	if cat.role == RoleLaunch || cat.role == RoleWork {
		correlation = p.correlation()
	}
	index := int32(profile.NoEvent)
	if p.keeps() && ev.dur >= p.opt.Filter.MinDur {
		index = int32(len(p.out.Events))
		p.out.Events = append(p.out.Events, profile.Slice{
			Time: ev.ts, Dur: ev.dur, Correlation: correlation, Name: nm.sym, Cat: cat.sym, Args: p.putArgs(), Place: cat.kind.On(row),
		})
	}
	if ev.bind != nil {
		p.bound(index, row)
	}
	if to := p.intArg(argTo); to >= 0 {
		p.out.Peers = append(p.out.Peers, PeerTask{Row: row, Time: ev.ts, Dur: ev.dur, From: p.intArg(argFrom), To: to, Name: nm.sym})
	}
	switch cat.role {
	case RoleLaunch:
		if correlation != 0 && correlation < ByExternal {
			p.out.Launches = append(p.out.Launches, profile.Launch{Time: ev.ts, Correlation: correlation, Row: row})
		}
		if !bytes.Equal(ev.pid, ev.tid) && strings.HasSuffix(nm.text, "Synchronize") {
			p.out.Syncs = append(p.out.Syncs, profile.CollectiveAnnotation{Row: row, Time: ev.ts, Dur: ev.dur})
		}
	case RoleWork:
		if p.opt.Filter.Fingerprint {
			p.out.Prints = append(p.out.Prints, profile.Fingerprint{Time: ev.ts, Dur: ev.dur, Name: nm.sym, Row: row})
		}
		p.grid(index)
		if p.found&collectiveArgs != 0 || nm.isComm() {
			p.collective(index, row, true)
		}
	case roleOp:
		if p.found&collectiveArgs != 0 {
			p.collective(index, row, false)
		}
		if strings.HasPrefix(nm.text, "c10d::") {
			p.out.Callers = append(p.out.Callers, profile.CollectiveAnnotation{Row: row, Time: ev.ts, Dur: ev.dur})
		}
	case roleComm:
		p.collective(index, row, false)
	case roleStep:
		switch {
		case cat.lane != LaneThread:
		case nm.isWaiting():
			p.collective(index, row, false)
		case nm.isAsking(p.symbols):
			p.out.Asked = append(p.out.Asked, profile.CollectiveAnnotation{Row: row, Time: ev.ts, Dur: ev.dur, Op: nm.asks})
		}
		if nm.isStep() {
			p.out.Steps = append(p.out.Steps, profile.Step{
				Event: index, Row: row, Time: ev.ts, Dur: ev.dur, Name: nm.sym,
				Kind: nm.label.Kind, Batch: nm.label.Batch, OnGPU: cat.lane == LaneStream,
			})
		}
	}
}

// grid records the grid of a kernel.
func (p *parser) grid(index int32) {
	const both = 1<<argGrid | 1<<argBlock
	if index == profile.NoEvent || p.found&both != both {
		return
	}
	blocks, threads := volume(p.got[argGrid].raw), int64(0)
	if blocks == 1 { // of others, it is not needed
		threads = volume(p.got[argBlock].raw)
	}
	if g := profile.GridOf(blocks, threads); g != 0 {
		p.out.Grids = append(p.out.Grids, profile.KernelGrid{Event: index, Grid: g})
	}
}

// volume returns the product of the whole numbers of a list, "[32, 1, 1]"; 0 if it is malformed, or if the
// product exceeds all grid sizes.
func volume(list []byte) int64 {
	product, number, digits := int64(1), int64(0), false
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9' && product*number < 1<<50:
			number, digits = 10*number+int64(c-'0'), true
		case c == ',' || c == ']':
			if !digits {
				return 0
			}
			product, number, digits = product*number, 0, false
		case c != ' ' && c != '[':
			return 0
		}
	}
	return product
}

// ByExternal is added to an "External id" that stands in for a missing correlation. Its meaning is only known
// after all events were read.
const ByExternal = 1 << 62

// correlation returns the number that joins the event to others, 0 if it has none.
func (p *parser) correlation() int64 {
	if p.found&(1<<argCorrelation) == 0 {
		if n := p.intArg(argExternal); n > 0 && n < ByExternal {
			p.out.External = true
			return ByExternal + n
		}
		return 0
	}
	n, ok := jsonscan.Int(p.got[argCorrelation].text())
	if !ok {
		return 0
	}
	p.linked, p.out.Linked = true, true
	return n
}

// instant records an event without duration.
func (p *parser) instant(row int32) {
	if p.keeps() {
		p.out.Instants = append(p.out.Instants, profile.Instant{
			Time: p.ev.ts, Row: row, Name: p.nameOf(&p.ev).sym, Cat: p.categoryOf(&p.ev).sym, Args: p.putArgs(),
		})
	}
}

// counter records the values of a counter, which are the arguments of the event.
func (p *parser) counter() {
	ev := &p.ev
	nm := p.nameOf(ev)
	part, pid, _ := identify(ev.pid, nil)
	raw, _ := ev.anyID()
	of := string(p.idText(raw))
	name := nm.text
	if of != "" {
		name += " [" + of + "]"
	}
	keeps := p.keeps()
	for a := range p.list.All {
		value, ok := numeric(a)
		if !ok {
			p.out.Report(trace.TraceCounterValue, p.at(), 1)
			continue
		}
		key := p.opt.Syms.Name(a.Key)
		id := &RowID{Lane: laneCounter, Part: part, PID: pid, extra: strings.Join([]string{nm.text, key, of}, "\x00"), name: name}
		if key != "" && key != nm.text && key != "value" {
			id.name += " " + key
		}
		row := p.rows.use(&p.out, p.rows.entry(id))
		if keeps {
			p.out.Samples = append(p.out.Samples, profile.CounterSample{Time: ev.ts, Value: value, Row: row})
		}
	}
}

// arrow records an event of a flow.
func (p *parser) arrow() {
	ev := &p.ev
	cat := p.categoryOf(ev)
	row := p.row(cat.lane)
	if cat.role == roleFlow && p.nameOf(ev).text == "launch" {
		p.out.Drawn = true
	}
	if cat.role == RoleArrow && p.linked || !p.keeps() {
		return
	}
	a := profile.Arrow{
		Time: ev.ts, Row: row, Cat: cat.sym, Name: p.nameOf(ev).sym, ID: p.symbols.Intern(p.idText(ev.id)),
		Event: profile.NoEvent, Phase: profile.FlowPhase(ev.ph), Enclosing: ev.enclosing,
	}
	if cat.role == RoleArrow {
		p.out.Redundant = append(p.out.Redundant, a)
	} else {
		p.out.Arrows = append(p.out.Arrows, a)
	}
}

// bound records the flow of a slice with a bind_id. index is that of the slice, or NoEvent.
func (p *parser) bound(index, row int32) {
	ev := &p.ev
	if !ev.flowIn && !ev.flowOut {
		return
	}
	if ev.flowOut && p.categoryOf(ev).role == RoleLaunch {
		p.out.Drawn = true
	}
	if index == profile.NoEvent {
		return
	}
	a := profile.Arrow{Time: ev.ts, Row: row, ID: p.symbols.Intern(p.idText(ev.bind)), Event: index, Phase: profile.FlowStep, Enclosing: true}
	if !ev.flowIn {
		a.Phase = profile.FlowStart
	} else if !ev.flowOut {
		a.Phase = profile.FlowEnd
	}
	p.out.Arrows = append(p.out.Arrows, a)
}

// idText returns the text of an id, a number or a string.
func (p *parser) idText(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return raw
	}
	p.text = p.unescape(p.text[:0], raw[1:len(raw)-1])
	return p.text
}

// metadata records an event of phase M.
func (p *parser) metadata() {
	ev := &p.ev
	what := p.nameOf(ev).text
	n := RowName{What: what}
	n.Part, n.PID, n.TID = identify(ev.pid, ev.tid)
	switch what {
	case "process_name", "thread_name":
		n.text, n.Own = p.masked(p.textArg(argName)), p.identity()
	case "process_labels":
		n.text = p.masked(p.textArg(argLabels))
	case "process_sort_index", "thread_sort_index":
		n.number, _ = jsonscan.Int(p.got[argSortIndex].text())
		if p.found&(1<<argSortIndex) == 0 {
			return
		}
	default:
		return
	}
	if strings.HasPrefix(what, "thread_") {
		p.row(LaneAny)
	}
	p.out.Names = append(p.out.Names, n)
}

// text returns a value without its quotes.
func (v argValue) text() []byte { return Unquoted(v.raw) }

// Unquoted returns a JSON value without its quotes, if it has any.
func Unquoted(raw []byte) []byte {
	if len(raw) >= 2 && raw[0] == '"' {
		return raw[1 : len(raw)-1]
	}
	return raw
}

// textArg returns the text of the argument with a role; "" if there is none.
func (p *parser) textArg(r argRole) string {
	if p.found&(1<<r) == 0 {
		return ""
	}
	return string(p.idText(p.got[r].raw))
}

// settleNotes reports the repairs in the event.
func (p *parser) settleNotes() {
	n := &p.notes
	// There are many arrows, and their names come from programs.
	if ph := p.ev.ph; ph != 's' && ph != 'f' && ph != 't' && p.nameOf(&p.ev).odd {
		p.out.Report(trace.TraceOddName, p.at(), 1)
	}
	if *n == (notes{}) {
		return
	}
	for _, r := range [...]struct {
		count   int
		message *trace.Message
	}{
		{n.commas, trace.TraceComma},
		{n.missing, trace.TraceMissingValue},
		{n.bare, trace.TraceBareWord},
		{n.lists, trace.TraceOpenList},
		{n.quotes, trace.TraceUnescapedQuote},
	} {
		if r.count > 0 {
			p.out.Report(r.message, p.at(), r.count)
		}
	}
	if n.secrets > 0 {
		p.out.Report(trace.SecretLeftOut, p.at(), n.secrets, "argument", p.opt.Syms.Name(n.secret))
	}
}

// numeric returns the value of an argument that is a number, or the text of one.
func numeric(a trace.Arg) (float64, bool) {
	switch a.Kind {
	case trace.ArgInt:
		return float64(a.Int()), true
	case trace.ArgUint:
		return float64(a.Uint()), true
	case trace.ArgFloat:
		return a.Float(), true
	case trace.ArgString:
		v, err := strconv.ParseFloat(string(a.Bytes()), 64)
		return v, err == nil
	}
	return 0, false
}
