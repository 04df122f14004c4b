package graphs

import (
	"path/filepath"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// A row is one node of one replay.
type row struct {
	launch *Launch
	number int // of the launch, over all ranks
	node   int
}

func (r *row) at() *Node { return &r.launch.Nodes[r.node] }

// Report returns the table of all kernels of graphs. g may be nil.
func (g *Graphs) Report(opt profilewalk.Options) *table.Table {
	var rows []row
	number := 0
	if g != nil {
		for _, s := range g.Streams {
			for i := range s.Launches {
				l := &s.Launches[i]
				for node := range l.Nodes {
					if e := l.Event(node); opt.Keeps(&e) {
						rows = append(rows, row{l, number, node})
					}
				}
				number++
			}
		}
	}
	text := func(name, doc string, of func(Place) trace.Sym) table.Field[row] {
		return table.TextColumn(name, doc, func(r *row) string {
			p, _ := r.launch.Place(r.node)
			return g.name(of(p))
		})
	}
	source := text("source", "innermost Python function outside of libraries", func(p Place) trace.Sym { return p.Source })
	shapes := text("shapes", "shapes of the inputs of the operator", func(p Place) trace.Sym { return p.Shapes })
	types := text("types", "types of the inputs of the operator", func(p Place) trace.Sym { return p.Types })
	kernel := table.TextColumn("kernel", "name of the kernel, copy, or fill", func(r *row) string { return g.name(r.at().Name) })
	source.Most, kernel.Most, shapes.Most, types.Most, types.Detail = table.MaxName, table.MaxName, maxShapes, maxShapes, true
	captured := table.TextColumn("capture", "capture file, and the number of tokens it was captured for", func(r *row) string { return r.launch.Capture.String() }).InDetail()
	fields := []table.Field[row]{
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(r *row) string { return g.set.Ranks[r.launch.Rank] }),
		table.CountColumn("launch", "number of the replay, in the order of the calls, rank by rank", func(r *row) int64 { return int64(r.number) }),
		table.CountColumn("index", "number of the kernel, in the order of the graph", func(r *row) int64 { return int64(r.node) }),
		table.NsColumn("dur", "duration", func(r *row) int64 { return r.at().Dur }),
		text("operator", "innermost operator around the launch at capture", func(p Place) trace.Sym { return p.Operator }),
		shapes, types,
		text("module", "innermost nn.Module or NVTX range around that launch", func(p Place) trace.Sym { return p.Module }),
		text("layer", "module that is a layer of the model", func(p Place) trace.Sym { return p.Layer }),
		table.TextColumn("matched by", "how the kernel was matched to a launch at capture: node (the recording says which call made the node), annotation (the program named the node; from a file of PyTorch), name (same name), grid (same grid and block), kind (the operator computes what the kernel's name says), repeat (elsewhere in the graph, kernels of this name belong to that operator), position (both sides fit, with no contradiction), order (order of kinds in a pass without a graph), ambiguous (several fit)", func(r *row) string {
			if r.launch.Capture == nil {
				return ""
			}
			return r.launch.Pairs.By[r.node].String()
		}),
		captured, source, kernel,
	}
	t := table.New("sgtrace.report.ops.graphkernels/v1", "Kernels of CUDA graphs, as they were captured", rows, fields)
	g.note(t, rows)
	return t
}

// maxShapes is the width of columns of shapes for people.
const maxShapes = 60

// String names a capture: "bs_32_rank0.json.gz (32 tokens)".
func (c *Capture) String() string {
	switch {
	case c == nil:
		return ""
	case c.Eager:
		return filepath.Base(c.File) + " (pass without a graph)"
	case c.Tokens == Unknown:
		return filepath.Base(c.File)
	}
	return filepath.Base(c.File) + " (" + words.Counted(int(c.Tokens), "token") + ")"
}

// note says how many kernels have an operator, and why others have none.
func (g *Graphs) note(t *table.Table, rows []row) {
	if len(rows) == 0 {
		return
	}
	var by [ByNode + 1]int
	without, modules, launches := 0, 0, map[*Launch]bool{}
	for i := range rows {
		l := rows[i].launch
		if l.Capture == nil {
			without++
			launches[l] = true
			continue
		}
		by[l.Pairs.By[rows[i].node]]++
		if l.Pairs.ModuleOnly(rows[i].node) {
			modules++
		}
	}
	known := len(rows) - without - by[ByNothing] - by[ByAmbiguity]
	if n := by[ByOrder]; n > 0 {
		t.Note("%d of %d are paired with a pass that ran without a graph, by the order of kinds of kernels: operators may be others in the graph", n, len(rows))
		if modules > 0 {
			t.Note("%d of these run attention by another kernel than the pass did: only the module is known", modules)
		}
	}
	if n := by[ByNode]; n > 0 {
		t.Note("%d of %d were made by a call in the same recording", n, len(rows))
	}
	if n := by[ByAnnotation]; n > 0 {
		t.Note("%d of %d have the name that the program gave their nodes", n, len(rows))
	}
	if other := by[ByOrder] + by[ByAnnotation] + by[ByNode]; known > other || other == 0 {
		known -= other
		t.Note("%d of %d have an operator from a capture: %d by name, %d by grid, %d by kind, %d by position alone", known, len(rows), by[ByName], by[ByGrid], by[ByKind]+by[ByRepeat], by[ByPlace])
	}
	if by[ByNothing] > 0 {
		t.Note("%d are in no capture: the graph was captured with other launches", by[ByNothing])
	}
	if by[ByAmbiguity] > 0 {
		t.Note("%d are ambiguous: several launches that say different things fit equally well", by[ByAmbiguity])
	}
	if without > 0 {
		t.Note("no capture fits %s of graphs with %s", words.Counted(len(launches), "replay"), words.Counted(without, "kernel"))
	}
}
