package otlpjson

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A plainSpan is a span with everything that belongs to it, in a form that does not depend on how
// it was read. Three readers produce it: the package, encoding/json, and sonic.
type plainSpan struct {
	trace, id, parent string // hex
	name              string
	kind, status      int
	start, end        int64
	attrs             string // see plainArgs
	events, links     []string
	resource, scope   string
}

func (s *plainSpan) String() string {
	return fmt.Sprintf("%s/%s parent=%s name=%s kind=%d status=%d %d..%d attrs=%s events=%s links=%s resource=%s scope=%s",
		s.trace, s.id, s.parent, quote(s.name), s.kind, s.status, s.start, s.end,
		s.attrs, s.events, s.links, s.resource, quote(s.scope))
}

// quote quotes a string. Each byte that is not valid UTF-8 becomes U+FFFD, as in encoding/json.
func quote(s string) string { return strconv.Quote(string([]rune(s))) }

func plainFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) + "f" }

func plainDict(entries []string) string { return "{" + strings.Join(entries, " ") + "}" }
func plainList(elems []string) string   { return "[" + strings.Join(elems, " ") + "]" }

// plainArgs prints arguments with their types: "text", 5, 0.5f, true, [..], {..}.
func plainArgs(d *spantable.Table, args func(func(trace.Arg) bool)) string {
	var out []string
	for a := range args {
		out = append(out, quote(d.Syms.Name(a.Key))+"="+plainArg(d, a))
	}
	return plainDict(out)
}

func plainArg(d *spantable.Table, a trace.Arg) string {
	switch a.Kind {
	case trace.ArgString:
		return quote(string(a.Bytes()))
	case trace.ArgInt:
		return strconv.FormatInt(a.Int(), 10)
	case trace.ArgFloat:
		return plainFloat(a.Float())
	case trace.ArgBool:
		return strconv.FormatBool(a.Bool())
	case trace.ArgArray:
		var out []string
		for e := range a.Elems {
			out = append(out, plainArg(d, e))
		}
		return plainList(out)
	case trace.ArgDict:
		return plainArgs(d, a.Elems)
	}
	return fmt.Sprintf("(kind %d)", a.Kind)
}

func plainID(hi, lo uint64) string { return fmt.Sprintf("%016x%016x", hi, lo) }
func plainSpanID(id uint64) string { return fmt.Sprintf("%016x", id) }

// plain returns span i of d.
func plain(d *spantable.Table, i int) *plainSpan {
	s := d.Span(i)
	p := &plainSpan{
		trace: plainID(s.TraceHi, s.TraceLo), id: plainSpanID(s.ID), parent: plainSpanID(s.Parent),
		name: d.Syms.Name(s.Name), kind: int(s.Kind), status: int(s.Status),
		start: int64(s.Start), end: int64(s.End), attrs: plainArgs(d, d.Args.All(s.Args)),
		resource: plainArgs(d, d.Args.All(d.Resource(s).Args)), scope: d.Syms.Name(d.Origins[s.Origin].Scope),
	}
	for e := range d.Events(i) {
		p.events = append(p.events, plainEvent(d.Syms.Name(e.Name), int64(e.Time), plainArgs(d, d.Args.All(e.Args))))
	}
	for l := range d.Links(i) {
		p.links = append(p.links, plainLink(plainID(l.TraceHi, l.TraceLo), plainSpanID(l.ID)))
	}
	return p
}

func plainEvent(name string, time int64, attrs string) string {
	return quote(name) + "@" + strconv.FormatInt(time, 10) + attrs
}

func plainLink(trace, span string) string { return trace + "/" + span }

// A reading is the result of reading some inputs.
type reading struct {
	*spantable.Table
	diags []trace.Diag
}

// read reads inputs in order, as files f1, f2, ...
func read(t testing.TB, inputs ...string) reading {
	t.Helper()
	return readWith(t, usual, same, inputs...)
}

// readSmall is read with small buffers that are cheap to allocate, for tests that read thousands of
// inputs.
func readSmall(t testing.TB, inputs ...string) reading {
	t.Helper()
	args, known := arenas.Load(t)
	if !known {
		args = trace.NewArgs()
		arenas.Store(t, args)
		t.Cleanup(func() { arenas.Delete(t) })
	}
	var diags trace.Diags
	d := spantable.New(&diags)
	d.Args = args.(*trace.Args)
	return readInto(t, d, limits{block: 1 << 12, piece: 1 << 15, record: 1 << 20}, same, inputs...)
}

// arenas has one arena per test, because allocating one takes longer than reading.
var arenas sync.Map

func same(r io.Reader) io.Reader { return r }

// readWith is read with the given limits, from readers that wrap makes.
func readWith(t testing.TB, l limits, wrap func(io.Reader) io.Reader, inputs ...string) reading {
	t.Helper()
	var diags trace.Diags
	return readInto(t, spantable.New(&diags), l, wrap, inputs...)
}

func readInto(t testing.TB, d *spantable.Table, l limits, wrap func(io.Reader) io.Reader, inputs ...string) reading {
	t.Helper()
	to := intake{Table: d, limits: l, blocks: &blocks{size: l.block}}
	for i, in := range inputs {
		if err := to.read(fmt.Sprintf("f%d", i+1), wrap(strings.NewReader(in))); err != nil {
			t.Fatal(err)
		}
	}
	return reading{d, d.Diags.All()}
}

// inOrder returns the spans in the order they were read.
func (r reading) inOrder() []string {
	out := make([]string, r.Len())
	for i := range out {
		out[i] = plain(r.Table, i).String()
	}
	return out
}

// names returns the names of the spans in the order they were read.
func (r reading) names() string {
	var out []string
	for i := range r.Len() {
		out = append(out, r.Syms.Name(r.Span(i).Name))
	}
	return strings.Join(out, " ")
}

// everything returns spans, files, and diagnostics: all that must not depend on how the input was
// split.
func (r reading) everything() []string {
	out := r.inOrder()
	for i := range out {
		out[i] += " at " + r.Pos(i).String()
	}
	for _, f := range r.Files {
		out = append(out, fmt.Sprintf("%+v", f))
	}
	for _, d := range r.diags {
		out = append(out, d.String())
	}
	return out
}

// loss reports whether a diagnostic says that data is missing.
func (r reading) loss() bool {
	return slices.ContainsFunc(r.diags, func(d trace.Diag) bool { return d.Severity >= trace.DataLoss })
}

// codes returns "code@position×count" for every diagnostic.
func (r reading) codes() string {
	var out []string
	for _, d := range r.diags {
		s := d.Code + "@" + d.Pos.String()
		if d.Count > 1 {
			s += fmt.Sprintf("×%d", d.Count)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// diff returns the first lines that differ between two listings, or "".
func diff(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d lines, want %d\n", len(got), len(want))
	for i, shown := 0, 0; i < max(len(got), len(want)) && shown < 3; i++ {
		g, w := "(nothing)", "(nothing)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			fmt.Fprintf(&b, "line %d\n got %.2000s\nwant %.2000s\n", i+1, g, w)
			shown++
		}
	}
	return b.String()
}
