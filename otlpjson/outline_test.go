package otlpjson

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// outlined returns the outline of an input, read in small pieces.
func outlined(t *testing.T, l limits, data string) *spantable.Outline {
	t.Helper()
	o := spantable.NewOutline(spantable.Prescan{
		Plain: func(name []byte) bool { return string(name) == "decode_loop" },
		Keys:  []string{"rid", "bootstrap_room"},
		Mark: func(key int, value []byte) (uint64, bool) {
			h := uint64(key) + 1
			for _, c := range value {
				h = h*31 + uint64(c)
			}
			return h, string(value) == "decode_forward"
		},
	})
	if err := (outliner{o, l, &blocks{size: l.block}}).outline("f1", strings.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return o
}

// checkOutline compares an outline with the spans that are read, and a selective read of some
// traces with those traces in a full read.
func checkOutline(t *testing.T, data string) {
	t.Helper()
	l := limits{block: 1 << 14, piece: 1 << 17, record: 1 << 20}
	o := outlined(t, l, data)
	whole := readWith(t, l, same, data)
	type extent struct {
		first, last trace.Time
		wanted      bool
	}
	want := map[spantable.TraceID]extent{}
	for i := range whole.Len() {
		s := whole.Span(i)
		id := spantable.TraceID{s.TraceHi, s.TraceLo}
		e, ok := want[id]
		if !ok {
			e = extent{first: s.Start, last: s.End}
		}
		want[id] = extent{min(e.first, s.Start), max(e.last, s.End), e.wanted || whole.Syms.Name(s.Name) == "decode_forward"}
	}
	if o.Spans < whole.Len() || !whole.loss() && o.Spans != whole.Len() {
		t.Errorf("%d spans are outlined, %d are read", o.Spans, whole.Len())
	}
	keep := make([]bool, len(o.Traces))
	for i, s := range o.Traces {
		keep[i] = s.ID[1]%3 == 0
		if w, ok := want[s.ID]; ok && (s.First > w.first || s.Last < w.last || w.wanted && !s.Wanted) || !whole.loss() && (extent{s.First, s.Last, s.Wanted}) != w {
			t.Errorf("trace %x is outlined as %v to %v (%v), it is %+v", s.ID, s.First, s.Last, s.Wanted, w)
		}
		delete(want, s.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d traces are not outlined", len(want))
	}
	d := spantable.New(new(trace.Diags))
	d.Selected = o.Choose(keep)
	got := readInto(t, d, l, same, data) // reads only the stretches of these traces
	some := slices.DeleteFunc(whole.inOrderWithTrace(), func(s string) bool { return s[0] != '0' })
	if d := diff(got.inOrderWithTrace(), some); d != "" {
		t.Errorf("of some traces: %s", d)
	}
	d = spantable.New(new(trace.Diags))
	d.Selected = o.Choose(keep)
	through := readInto(t, d, l, func(r io.Reader) io.Reader { return struct{ io.Reader }{r} }, data)
	if d := diff(through.everything(), got.everything()); d != "" {
		t.Errorf("from one end to the other: %s", d)
	}
	if got.Files[0].Spans != whole.Files[0].Spans && !whole.loss() {
		t.Errorf("%d spans are counted of %d", got.Files[0].Spans, whole.Files[0].Spans)
	}
	if got.Files[0].Documents != whole.Files[0].Documents && !whole.loss() {
		t.Errorf("%d documents are counted of %d", got.Files[0].Documents, whole.Files[0].Documents)
	}
}

// inOrderWithTrace is inOrder with the trace id modulo 3 before each span.
func (r reading) inOrderWithTrace() []string {
	out := r.inOrder()
	for i := range out {
		out[i] = fmt.Sprint(r.Span(i).TraceLo%3, " ", out[i])
	}
	return out
}

// An outline is complete, and reading with it gives the same as reading without.
func TestOutline(t *testing.T) {
	for i, dump := range testinput.EveryMode(t, 30) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			checkOutline(t, string(dump))
			checkOutline(t, frames(protoMessages(t, string(dump))...))
			checkOutline(t, strings.ReplaceAll(string(dump), `"traceId":`, `"traceId" : `))
		})
	}
}

func TestOutlineOfSharedDumps(t *testing.T) {
	dir := testinput.Shared(t, "data", "otel")
	for _, pattern := range []string{"[abcei]*_*.jsonl*", "damaged/*.zst", "f_collector_variants/*.json*"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range names {
			rel, _ := filepath.Rel(dir, name)
			t.Run(rel, func(t *testing.T) { checkOutline(t, head(shared(t, rel), 2<<20)) })
		}
	}
}

// An outline of damaged inputs is as complete as a reading of them.
func TestOutlineOfDamage(t *testing.T) {
	dump := string(testinput.EveryMode(t, 20)[0])
	for seed := range uint64(2 * 14) {
		m := (&testinput.Subject{Data: []byte(dump)}).Mutate(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkOutline(t, string(m.Data)) })
	}
}
