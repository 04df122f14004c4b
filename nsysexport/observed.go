package nsysexport

import (
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"iter"
)

// observed walks over what is not held of an export: samples of threads and of devices. It
// opens the export for each walk, as few are asked for. What is wrong with the export was said
// when its events were read.
type observed struct {
	profile.Stream // none: nobody asks for what is held
	name, path     string
	syms           *trace.Symbols
	rank           func(pid int32) int32
}

func (o observed) walk(what func(st profile.Stream)) {
	src, err := rows.Open(o.path, rows.Options{Name: o.name, Syms: o.syms, Diags: &trace.Diags{}, Brief: true})
	if err != nil {
		return
	}
	defer src.Close()
	what(NewStream(src, o.rank))
}

func (o observed) Samples(yield func(*profile.Sample) bool) {
	o.walk(func(st profile.Stream) { st.Samples(yield) })
}

func (o observed) Backtraces(wanted func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(yield func(*profile.Sample) bool) {
		o.walk(func(st profile.Stream) { st.Backtraces(wanted)(yield) })
	}
}

func (o observed) Runs(yield func(*profile.Run) bool) {
	o.walk(func(st profile.Stream) { st.Runs(yield) })
}

func (o observed) CounterValues(yield func(*profile.CounterValue) bool) {
	o.walk(func(st profile.Stream) { st.CounterValues(yield) })
}
