package chrometrace

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A reading is the result of Read, with the tables needed to print it.
type reading struct {
	*profile.Profile
	opt   Options
	err   error
	diags []trace.Diag
}

func same(r io.Reader) io.Reader { return r }

// readWith reads data as a file called f.
func readWith(opt Options, l parse.Limits, wrap func(io.Reader) io.Reader, data []byte) reading {
	opt.Syms, opt.Diags = trace.NewSymbols(), new(trace.Diags)
	if opt.Args == nil {
		opt.Args = trace.NewArgs()
	}
	r := reading{opt: opt}
	r.Profile, r.err = read("f", wrap(bytes.NewReader(data)), opt, l)
	r.diags = opt.Diags.All()
	return r
}

// parsed reads data with one worker and pieces of the default size.
func parsed(t testing.TB, data string) reading {
	t.Helper()
	r := readWith(Options{Workers: 1}, parse.Usual, same, []byte(data))
	if r.err != nil {
		t.Fatalf("%v", r.err)
	}
	return r
}

// codes returns the codes of the diagnostics with counts and positions.
func (r reading) codes() string {
	var out []string
	for _, d := range r.diags {
		code := fmt.Sprintf("%s@%d", d.Code, d.Pos.Offset)
		if d.Count > 1 {
			code += fmt.Sprintf("*%d", d.Count)
		}
		out = append(out, code)
	}
	return strings.Join(out, " ")
}

func (r reading) loss() bool {
	return slices.ContainsFunc(r.diags, func(d trace.Diag) bool { return d.Severity >= trace.DataLoss })
}

func (r reading) name(s trace.Sym) string { return plainText([]byte(r.opt.Syms.Name(s))) }

// plainText returns s with each invalid byte replaced by U+FFFD, as encoding/json does.
func plainText(s []byte) string { return string([]rune(string(s))) }

// row returns the identity of a row.
func (r reading) row(i int32) string {
	x := r.Rows[i]
	return fmt.Sprintf("%q", []string{plainText([]byte(x.Part)), plainText([]byte(x.PIDText)), plainText([]byte(x.TIDText))})
}

// plain returns the value of an argument.
func (r reading) plain(a trace.Arg) string {
	list := func(open, end string, keys bool) string {
		var out []string
		for e := range a.Elems {
			text := r.plain(e)
			if keys {
				text = strconv.Quote(r.name(e.Key)) + ":" + text
			}
			out = append(out, text)
		}
		return open + strings.Join(out, ",") + end
	}
	switch a.Kind {
	case trace.ArgString:
		return strconv.Quote(plainText(a.Bytes()))
	case trace.ArgInt:
		return strconv.FormatInt(a.Int(), 10)
	case trace.ArgUint:
		return strconv.FormatUint(a.Uint(), 10)
	case trace.ArgFloat:
		return strconv.FormatFloat(a.Float(), 'g', -1, 64) + "f"
	case trace.ArgBool:
		return strconv.FormatBool(a.Bool())
	case trace.ArgArray:
		return list("[", "]", false)
	}
	return list("{", "}", true)
}

func (r reading) plainArgs(id trace.ArgsID) string {
	var out []string
	for a := range r.opt.Args.All(id) {
		out = append(out, strconv.Quote(r.name(a.Key))+":"+r.plain(a))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// events returns the slices as text.
func (r reading) events() (out []string) {
	for _, s := range r.Events {
		out = append(out, fmt.Sprintf("X %s %q %q %d+%d %s", r.row(s.Place.Row()), r.name(s.Name), r.name(s.Cat), s.Time, s.Dur, r.plainArgs(s.Args)))
	}
	return out
}

// names returns the names of the slices.
func (r reading) names() string {
	var out []string
	for _, s := range r.Events {
		out = append(out, r.name(s.Name))
	}
	return strings.Join(out, " ")
}

// records returns all events as text that does not depend on row numbers.
func (r reading) records() []string {
	out := r.events()
	for _, x := range r.Instants {
		out = append(out, fmt.Sprintf("i %s %q %d %s", r.row(int32(x.Row)), r.name(x.Name), x.Time, r.plainArgs(x.Args)))
	}
	for _, x := range r.Samples {
		row := r.Rows[x.Row]
		out = append(out, fmt.Sprintf("C %q %q %d %v", plainText([]byte(row.Part)), plainText([]byte(row.PIDText)), x.Time, x.Value))
	}
	for _, x := range r.Arrows {
		out = append(out, fmt.Sprintf("%c %s %q %q %q %d %v %d", x.Phase, r.row(x.Row), r.name(x.Cat), r.name(x.Name), r.name(x.ID), x.Time, x.Enclosing, x.Event))
	}
	var work []string
	for i, x := range r.Events {
		link := fmt.Sprintf("%d %s %d", i, r.row(x.Place.Row()), x.Correlation)
		switch {
		case x.IsLaunch():
			out = append(out, "launch "+link)
		case x.IsWork():
			work = append(work, "work "+link)
		}
	}
	return append(out, work...)
}

// links returns the number of launch calls and of GPU work items with correlations.
func (r reading) links() (launches, work int) {
	for i := range r.Events {
		switch e := &r.Events[i]; {
		case e.IsLaunch():
			launches++
		case e.IsWork():
			work++
		}
	}
	return launches, work
}

// everything returns all contents of a reading.
func (r reading) everything() []string {
	if r.err != nil {
		return []string{"error " + r.err.Error()}
	}
	out := r.records()
	for i := range r.Collectives.Len() {
		x := r.Collectives.At(i)
		y := x
		y.Name, y.Op, y.Group, y.Ranks, y.Dtype = 0, 0, 0, 0, 0
		out = append(out, fmt.Sprintf("collective %+v %q %q %q %q %q", y, r.name(x.Name), r.name(x.Op), r.name(x.Group), r.name(x.Ranks), r.name(x.Dtype)))
	}
	for _, x := range r.Steps {
		y := x
		y.Name = 0
		out = append(out, fmt.Sprintf("step %+v %q", y, r.name(x.Name)))
	}
	for i, x := range r.Rows {
		out = append(out, fmt.Sprintf("row %d %+v", i, x))
	}
	for _, d := range r.diags {
		out = append(out, "diag "+d.String())
	}
	return append(out, fmt.Sprintf("meta %+v %d %d %d", r.Meta, r.First, r.Last, r.Total))
}

// diff returns the first difference between two lists, or "".
func diff(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("record %d of %d is\n\t%.600s\nwant, of %d,\n\t%.600s\n", i, len(got), g, len(want), w)
		}
	}
	return ""
}
