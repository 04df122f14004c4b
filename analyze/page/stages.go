package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// maxRows limits the rows of a table on the page.
const maxRows = 200

// Stages makes the section that compares server ranks, stage by stage, between from and to, with their load. ranks
// may be nil.
func Stages(set *request.Set, ranks *rank.Ranks, from, to trace.Time, src Source) Section {
	s := Section{ID: "ranks", Title: "Ranks of servers"}
	if ranks != nil {
		s.Lead = ranks.Verdict()
	}
	for role, engines := range rank.Engines(set, from, to) {
		f, why := stageFigure(request.Role(role), engines, from, to, src)
		if f != nil {
			s.Figures = append(s.Figures, f)
		} else if why != "" {
			s.Notes = append(s.Notes, why)
		}
	}
	if len(s.Figures)+len(s.Notes) == 0 {
		s.Notes = []string{"No heat map of stages: the spans do not tell on which rank they were."}
	}
	if ranks != nil {
		for _, r := range ranks.Reports() {
			f := TableOf(r, maxRows, "Ranks of servers", src.Command("--by-rank", tableFlag(r)))
			if f.Title == s.Lead { // repeated, the verdict would look like two
				f.Title = "The same in numbers"
			}
			s.Figures = append(s.Figures, f)
		}
	}
	byRank, err := requests.ParseDimensions("rank")
	if err != nil {
		panic(err) // the dimension exists
	}
	r := requests.GroupStages(set, byRank).Report()
	s.Figures = append(s.Figures, TableOf(r, maxRows, "Stages", src.Command("--by-rank", tableFlag(r))))
	return s
}

// minPart is the smallest share of time that is compared: for a stage, of the time of all stages; for a kernel, of
// the time of the kernels that several ranks ran. Shorter ones, of a few us, may differ by a factor of two, which
// doesn't matter.
const minPart = 0.005

// Limits of the figures of stages. stageSteps are the color thresholds: how much longer or shorter a stage takes than
// on peers, as a share of their time.
const (
	maxStages = 6
	maxRanks  = 64 // rows, over all stages
)

var stageSteps = []float64{0.05, 0.1, 0.2, 0.35, 0.5}

// stageFigure compares the engines of a role over time. If it can't, it says why; for a role without engines, why is
// "".
func stageFigure(role request.Role, engines []*rank.Engine, from, to trace.Time, src Source) (f *Figure, why string) {
	histories, small := rank.StageHistories(engines, minPart)
	switch {
	case len(engines) == 0:
		return nil, ""
	case len(engines) == 1 && engines[0].Ranks == 1:
		return nil, fmt.Sprintf("No heat map of stages of %s: it has no peers.", engines[0].Name)
	case len(engines) == 1:
		return nil, fmt.Sprintf("No heat map of stages of %s: its %d ranks wait for each other in every step, so stages take equally long on all of them. Lateness tells them apart.",
			engines[0].Name, engines[0].Ranks)
	case len(histories) == 0:
		return nil, fmt.Sprintf("No heat map of stages of %s servers: no two of them have the same stages.", role)
	}
	f = &Figure{
		ID: "stages-" + role.String(), Shows: []finding.Kind{finding.Slower, finding.Pipeline}, Role: role.String(),
		Title: fmt.Sprintf("Stages over time, compared between peers: %s", role),
		Caption: "How much longer a stage takes than the median (nearest rank) of its peers, on average. Orange takes longer. Peers are servers, or DP ranks, of one role; " +
			"ranks that take each step together are one row. Differences within three standard errors have no color.",
		Defined: "Stages", Command: src.Command("--by-rank", "--table=stages"),
	}
	heat := &chart.TimeHeat{Steps: stageSteps, Unit: table.Share, What: "longer than peers", From: from, To: to}
	rows := 0
	for i, s := range histories {
		if i == maxStages || i > 0 && rows+len(s.Engines) > maxRanks {
			f.Notes = append(f.Notes, roomNote(i, len(histories), "stages"))
			break
		}
		rows += len(s.Engines)
		heat.Groups = append(heat.Groups, stageGroup(s, from, to))
	}
	if small > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("stages of less than %g %% of the time are left out: %d", 100*minPart, small))
	}
	f.Body = heat
	return f, ""
}

// stageGroup makes a row for each engine.
func stageGroup(s *rank.StageHistory, from, to trace.Time) chart.HeatGroup {
	g := chart.HeatGroup{Name: s.Name, From: from, To: to}
	for i, parts := range s.Compare() {
		row := chart.HeatRow{Name: s.Engines[i].Name}
		for p := range parts {
			row.Values, row.Texts = append(row.Values, parts[p].Longer), append(row.Texts, stagePartText(&parts[p]))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func stagePartText(p *rank.StagePart) string {
	switch {
	case p.N == 0:
		return ""
	case math.IsNaN(p.Usual):
		return "too few to compare: " + words.Counted(p.N, "span")
	}
	return fmt.Sprintf("%s on average (%s), its peers %s", durationText(int64(p.Mean)), words.Counted(p.N, "span"), durationText(int64(p.Usual)))
}

func durationText(ns int64) string { return trace.FormatDuration(ns) }

// narrowest is the smallest share of a flame graph that gets its own box, and maxBoxes limits the boxes, to keep the
// page small.
const (
	narrowest = 0.002
	maxBoxes  = 2500
)

// frameKinds are the colors of frames.
var frameKinds = []chart.Part{{Name: "Python", Color: 0}, {Name: "operator", Color: 2}, {Name: "call into CUDA or HIP", Color: 1}, {Name: "OS call", Color: 6}, {Name: "garbage collection", Color: 4}, {Name: "range", Color: 7}, {Name: "native code", Color: 5}, {Name: "kernel or copy", Color: 3}, {Name: "narrow frames", Color: 10}}

// callFrame is the index into frameKinds of calls into CUDA or HIP; frameKind has that of the other activities.
const callFrame = 2

var frameKind = map[host.Activity]int{
	host.InPython: 0, host.Locked: 0, host.Sleeping: 0, host.InOperator: 1, host.SystemCall: 3, host.Collecting: 4,
	host.InRange: 5, host.LoadingData: 5, host.InNative: 6, host.OnDevice: 7, host.NotRecorded: 8,
}

// Stacks makes the section about time by stack.
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
func flameFigure(s *host.Stacks, of host.TimeOf, f *Figure) *Figure {
	narrow := narrowest
	flame := s.Flame(of, narrow)
	for len(flame.Boxes) > maxBoxes {
		narrow *= 2
		flame = s.Flame(of, narrow)
	}
	if len(flame.Boxes) == 0 {
		return nil
	}
	body := &chart.Flame{Kinds: frameKinds, Total: float64(flame.Total), Unit: func(ns float64) string { return words.Nearly(int64(ns)) }}
	for i := range flame.Boxes {
		b := &flame.Boxes[i]
		kind, ok := frameKind[b.Activity]
		if !ok {
			kind = callFrame
		}
		box := chart.FlameBox{Name: b.Name, Label: host.Short(b.Name), Kind: kind, Depth: b.Depth, From: float64(b.From), Value: float64(b.Time)}
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
