package drawing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// scopes are the instrumentation scopes of rows: the libraries that made them. Where all
// rows of a process have one, it says nothing about any of them, and only the trace tells of
// it; where they differ, each slice does.
type scopes struct {
	key     trace.Sym
	differs []bool // by source: its process has rows of other scopes
}

// newScopes finds the processes whose rows have several scopes.
func newScopes(set *request.Set, b *trace.Builder) scopes {
	s := scopes{key: b.Intern("otel.scope.name"), differs: make([]bool, len(set.Sources))}
	of := map[int][]trace.Sym{} // by writer
	eachSource(set, func(x *request.Source) {
		if list := of[x.Writer]; !slices.Contains(list, x.Scope) {
			of[x.Writer] = append(list, x.Scope)
		}
	})
	for i, x := range set.Sources {
		s.differs[i] = x.Scope != 0 && len(of[x.Writer]) > 1
	}
	return s
}

// eachSource calls f for all sources that rows come from.
func eachSource(set *request.Set, f func(*request.Source)) {
	used := make([]atomic.Bool, len(set.Sources))
	parallel.Rows(set.Len(), request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			if at := &used[set.Rows[i].Source]; !at.Load() {
				at.Store(true)
			}
		}
	})
	for s := range used {
		if used[s].Load() {
			f(&set.Sources[s])
		}
	}
}

// describeScopes notes the scopes of all services.
func describeScopes(b *trace.Builder, set *request.Set) {
	of := map[string][]string{} // by service
	eachSource(set, func(x *request.Source) {
		service, scope := set.Syms.Name(set.Writers[x.Writer].Service), set.Syms.Name(x.Scope)
		if scope != "" && !slices.Contains(of[service], scope) {
			of[service] = append(of[service], scope)
		}
	})
	for _, service := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[service])
		b.Attribute("sgtrace.scope."+cmp.Or(service, "unknown service"), strings.Join(of[service], ", "))
	}
}

// withScope returns the arguments of a row, with its scope if others of its process have another.
func (d *drawing) withScope(row *request.Row, args trace.ArgsID) trace.ArgsID {
	if !d.scopes.differs[row.Source] {
		return args
	}
	d.scratch = d.scratch[:0].String(d.scopes.key, d.set.Syms.Name(d.set.Sources[row.Source].Scope))
	return d.b.Args().Put(d.scratch.Extend(args))
}
