package page

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// narrowest is the share of a flame graph that a box has at least, and mostBoxes how many there
// are: the page stays small.
const (
	narrowest = 0.002
	mostBoxes = 2500
)

// frameKinds are the colors of frames.
var frameKinds = []chart.Part{{Name: "Python", Color: 0}, {Name: "operator", Color: 2}, {Name: "call into CUDA or HIP", Color: 1}, {Name: "OS call", Color: 6}, {Name: "garbage collection", Color: 4}, {Name: "range", Color: 7}, {Name: "native code", Color: 5}, {Name: "kernel or copy", Color: 3}, {Name: "narrow frames", Color: 10}}

// frameKind returns the color of what a thread does in a frame: an index into frameKinds.
func frameKind(did host.Did) int {
	switch did {
	case host.InPython, host.Locked, host.Sleeping:
		return 0
	case host.InOperator:
		return 1
	case host.SystemCall:
		return 3
	case host.Collecting:
		return 4
	case host.InRange:
		return 5
	case host.InNative:
		return 6
	case host.OnDevice:
		return 7
	case host.NotRecorded:
		return 8
	}
	return 2
}

// Stacks makes the section about where time went by stack.
func Stacks(s *host.Stacks, src Source) Section {
	section := Section{ID: "stacks", Title: "Stacks"}
	missing := s.Missing()
	if !s.Code() {
		section.Note = "Not drawn: " + strings.Join(missing, "; ") + "."
		return section
	}
	cpu := flameFigure(s, host.CPU, &Figure{
		ID:    "flame-cpu",
		Title: "CPU time by stack", Defined: "Stacks", Command: src.Command("--stacks"),
		Caption: "Time of threads. Each box is a frame, as wide as the time in it; below it are the frames that it entered. Time that threads spent waiting is left out.",
		Notes:   missing,
	})
	gpu := flameFigure(s, host.GPU, &Figure{
		ID:    "flame-gpu",
		Title: "GPU time by the stack that launched it", Defined: "Stacks", Command: src.Command("--stacks", "--table=stacks.gpu"),
		Caption: "Time of kernels and copies, below the stack of the call that launched them.",
	})
	for _, f := range []*Figure{cpu, gpu} {
		if f != nil {
			section.Figures = append(section.Figures, f)
		}
	}
	return section
}

// flameFigure draws a flame graph; nil if there is nothing to draw.
func flameFigure(s *host.Stacks, of host.Of, f *Figure) *Figure {
	narrow := narrowest
	flame := s.Flame(of, narrow)
	for len(flame.Boxes) > mostBoxes {
		narrow *= 2
		flame = s.Flame(of, narrow)
	}
	if len(flame.Boxes) == 0 {
		return nil
	}
	body := &chart.Flame{Kinds: frameKinds, Total: float64(flame.Total), Unit: func(ns float64) string { return words.Nearly(int64(ns)) }}
	for i := range flame.Boxes {
		b := &flame.Boxes[i]
		box := chart.FlameBox{Name: b.Name, Label: host.Short(b.Name), Kind: frameKind(b.Did), Depth: b.Depth, From: float64(b.From), Value: float64(b.Time)}
		if b.Merged > 0 {
			box.Name = fmt.Sprintf("%d frames, each less than %s %%", b.Merged, words.InPercent(narrow))
			box.Label, box.Kind = words.Counted(b.Merged, "narrow frame"), len(frameKinds)-1
		}
		body.Boxes = append(body.Boxes, box)
	}
	f.Notes = append(f.Notes, fmt.Sprintf("frames of less than %s %% of the time are merged with those beside them; the command prints all", words.InPercent(narrow)))
	f.Body = body
	return f
}
