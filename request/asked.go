package request

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// An Asked is something that was asked for with a request, or said of who asks: the model,
// the priority, a header.
type Asked struct {
	Key    trace.Sym
	Text   string  // "" of none
	Number float64 // NaN of a text
}

// EachAsked calls f for all that was asked for with r, as its gateway and its servers tell.
// It may call f more than once for one key.
func (s *Set) EachAsked(r *Request, f func(Asked)) {
	visit := func(row int) {
		if row == None {
			return
		}
		memory.Touch(partSize)
		for a := range s.Args.All(s.Rows[row].Args) {
			if asked, ok := s.asked(a); ok {
				f(asked)
			}
		}
	}
	visit(r.Gateway)
	for _, p := range s.PartsOf(r) {
		visit(s.Parts[p].Root)
	}
}

// IsResult reports whether an argument tells which request it is or how it went.
func (s *Set) IsResult(key trace.Sym) bool {
	name := s.names[key]
	return slices.ContainsFunc(s.Results, func(r string) bool {
		return name == r || strings.HasSuffix(r, ".") && strings.HasPrefix(name, r)
	})
}

// asked reads an argument; ok is false for one with several values, or with none. Of headers,
// OpenTelemetry writes a list.
func (s *Set) asked(a trace.Arg) (asked Asked, ok bool) {
	asked = Asked{Key: a.Key, Number: math.NaN()}
	if a.Kind == trace.ArgArray {
		if elems := slices.Collect(a.Elems); len(elems) == 1 {
			a = elems[0]
		}
	}
	switch a.Kind {
	case trace.ArgString:
		if asked.Text = string(a.Bytes()); asked.Text == "" {
			return asked, false
		}
	case trace.ArgBool:
		asked.Text = strconv.FormatBool(a.Bool())
	case trace.ArgInt:
		asked.Number = float64(a.Int())
	case trace.ArgUint:
		asked.Number = float64(a.Uint())
	case trace.ArgFloat:
		asked.Number = a.Float()
	default:
		return asked, false
	}
	if asked.Text == "" {
		asked.Text = strconv.FormatFloat(asked.Number, 'g', -1, 64)
	}
	if s.redact != nil {
		asked.Text = s.redact.Attribute(s.names[asked.Key], asked.Text)
	}
	return asked, true
}

// KeyName is how a key of arguments is called.
func (s *Set) KeyName(key trace.Sym) string { return s.names[key] }
