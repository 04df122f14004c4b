package page

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Limits of the figures of what could be faster.
const (
	maxOperators = 150
	maxLayers    = 128
	maxFaster    = 20 // rows of a table

	minDot = 0.001 // share of kernel time below which an operator is not drawn
)

// Opportunities makes the section about GPU work that could be faster.
func Opportunities(o *overview.Overview, replays *graphs.Graphs, src Source) Section {
	s := Section{ID: "faster", Title: "What could be faster"}
	opt := profilewalk.Options{From: o.Devices.From, To: o.Devices.To}
	clocks := finders.SMClocks(o.Of.Series, o.Profiles, gpu.Options{From: opt.From, To: opt.To})
	found := gpuloss.FindFaster(o.Profiles, replays, operators.Beside{Routed: operators.RoutedTokensOf(o.Of.Experts), Clocks: clocks}, opt)
	if len(found.List) > 0 {
		s.Lead = found.Lead()
	}
	if f := roofFigure(found.Roofs, o.Profiles, src); f != nil {
		s.Figures = append(s.Figures, f)
	}
	if f := layerFigure(replays, src); f != nil {
		s.Figures = append(s.Figures, f)
	}
	for _, r := range []*table.Table{found.Report(), found.Roofs.Report(), found.Fills.Report()} {
		if r.Len() > 0 {
			s.Figures = append(s.Figures, TableOf(r, maxFaster, "What could be faster", src.Command("--kernels", tableFlag(r))))
		}
	}
	return s
}

// roofFigure shows how close operators come to the GPU's limits; nil if those limits or the work of all operators are
// unknown, or if the GPUs differ.
func roofFigure(roofs *operators.Rooflines, set *profile.Set, src Source) *Figure {
	g, ok := operators.GPUOf(set.GPU(profilewalk.NoRank))
	if !ok {
		return nil
	}
	body := &chart.Roofline{Bandwidth: g.Bandwidth}
	for _, p := range []chart.Peak{{Name: "16 bits", TFLOPs: g.Half}, {Name: "8 bits", TFLOPs: g.Eight}, {Name: "4 bits", TFLOPs: g.Four}} {
		if p.TFLOPs > 0 {
			body.Peaks = append(body.Peaks, p)
		}
	}
	body.Groups = []chart.RoofGroup{{Name: "bound by memory", Color: 0}, {Name: "bound by compute", Color: 1}, {Name: "above the roof: a wrong model, or a cache", Color: 5}}
	all, drawn, time := 0, 0, 0.0
	for i := range roofs.Rows {
		r := &roofs.Rows[i]
		if !(r.Work.FLOPs > 0) || math.IsNaN(r.Of()) || r.Bound == operators.ByLink || r.Share < minDot {
			continue
		}
		if all++; drawn == maxOperators {
			continue
		}
		drawn++
		time += r.Share
		group := &body.Groups[0]
		switch {
		case r.Of() > 1:
			group = &body.Groups[2]
		case r.Bound == operators.ByCompute:
			group = &body.Groups[1]
		}
		group.Dots = append(group.Dots, chart.RoofDot{Name: words.JoinNonEmpty(" ", r.Row.Name, r.Shapes), Intensity: r.Work.FLOPs / r.Work.Bytes, TFLOPs: r.Work.FLOPs / float64(r.Time) / 1e3,
			Time: durationText(r.Time), Share: r.Of()})
	}
	if drawn == 0 {
		return nil
	}
	f := &Figure{ID: "roofline", Title: "Roofline", Defined: "What could be faster", Command: src.Command("--kernels", "--table=kernels.roof"), Body: body,
		Caption: fmt.Sprintf("Operators of one shape, by how many operations they need for each byte, and how many they do in a second. Lines are what a %s can do at most, by its data sheet: what its memory feeds, and what it computes. "+
			"The farther a dot is below the line of its numbers, the more could be gained.", g.Name),
		Notes: []string{fmt.Sprintf("drawn are operators with a formula that compute something: %.0f %% of the time of kernels", 100*time)}}
	if all > drawn {
		f.Notes = append(f.Notes, roomNote(drawn, all, "operators"))
	}
	return f
}

// maxKinds is the number of kernel kinds with a color of their own in the figure of layers.
const maxKinds = 8

// layerFigure shows the layers of one replay; nil if there are none.
func layerFigure(replays *graphs.Graphs, src Source) *Figure {
	list, what := replays.OneReplay()
	if list == nil {
		return nil
	}
	body := &chart.Strip{}
	parts := kindParts(body, list)
	rows := map[string]int{}
	for i := range list {
		k := &list[i]
		row, known := rows[k.Layer]
		if !known {
			if len(body.Rows) == maxLayers {
				continue
			}
			row = len(body.Rows)
			rows[k.Layer] = row
			body.Rows = append(body.Rows, chart.StripRow{Name: k.Layer})
		}
		r := &body.Rows[row]
		r.Pieces = append(r.Pieces, chart.StripPiece{Part: parts[k.Kind], From: k.From, To: k.To,
			Text: k.Kind.String() + ": " + table.Shorten([]string{k.Name}, maxStripName)[0]})
	}
	return &Figure{ID: "layers", Title: "Layers of a CUDA graph", Defined: "What could be faster", Command: src.Command("--kernels", "--table=kernels.layers"), Body: body,
		Caption: "The layers of one replay (" + what + "), below each other: what each runs from its beginning on, by the kind of kernel. The replay is the median of the graph that took the most time. Drag to zoom."}
}

// maxStripName limits the letters of a kernel's name in a layer.
const maxStripName = 40

// kindParts assigns colors to the kinds of kernels, those with the most time first, and returns the part of each
// kind.
func kindParts(body *chart.Strip, list []graphs.LayerKernel) map[kernelname.Kind]int {
	times := map[kernelname.Kind]int64{}
	for i := range list {
		times[list[i].Kind] += list[i].To - list[i].From
	}
	parts := map[kernelname.Kind]int{}
	for i, kind := range order.Largest(times) {
		parts[kind] = min(i, maxKinds)
		switch {
		case i < maxKinds:
			body.Parts = append(body.Parts, chart.Part{Name: kind.String(), Color: i})
		case i == maxKinds:
			body.Parts = append(body.Parts, chart.Part{Name: "others", Color: chart.Gray})
		}
	}
	return parts
}
