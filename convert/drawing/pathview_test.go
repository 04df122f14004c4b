package drawing

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A path is a row of pieces, connected by arrows in order and to the stages that they wait for.
// Each arrow starts at the slice that begins first.
func TestPathsAreDrawn(t *testing.T) {
	set := simulated(t, 40)
	stage := request.None
	for i := range set.Len() {
		if set.Kind(i) == request.Stage && set.Row(i).Means == request.Prefilling {
			stage = i
			break
		}
	}
	row := set.Row(stage)
	paths := []Path{{Name: "f3a1 · 9 ms", Pieces: []Piece{
		{From: row.Start - 5e6, Until: row.Start, Name: "queue", Stage: request.None},
		{From: row.Start, Until: row.End, Name: "prefill · prefill TP0", Record: []Field{{Key: "for", Text: "own prefill", Number: math.NaN()}}, Stage: stage},
		{From: row.End, Until: row.End + 3e6, Name: "join", Stage: request.None},
	}}}
	for _, view := range []View{ViewBoth, ViewThread, ViewRequest} {
		got := written(t, set, Options{View: view, Paths: paths})
		var list []string
		for _, s := range got.Slices {
			if s.Track.Path() != " Critical path > 1 · f3a1 · 9 ms" {
				continue
			}
			text := fmt.Sprint(s.Name, " ", s.Start-int64(row.Start), "+", s.Dur, " ", s.Args)
			for _, in := range s.In {
				if strings.HasPrefix(in.Track.Path(), " Critical path") {
					text += " after " + in.Name
				} else if text += " with a stage"; in.Start != int64(row.Start) || in.Dur != int64(row.End-row.Start) {
					t.Errorf("%v: the stage is %s at %d", view, in.Name, in.Start)
				}
			}
			list = append(list, text)
		}
		want := fmt.Sprintf("queue -5000000+5000000 map[]\nprefill · prefill TP0 0+%d map[waits_for:own prefill] after queue with a stage\njoin %d+3000000 map[] after prefill · prefill TP0", row.End-row.Start, row.End-row.Start)
		if text := strings.Join(list, "\n"); text != want {
			t.Errorf("%v: got\n%s\nwant\n%s", view, text, want)
		}
	}
}
