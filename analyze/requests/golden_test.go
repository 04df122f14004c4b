package requests

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func TestGoldenReports(t *testing.T) {
	s := testset.Fixture(t)
	reports := map[string]func() *table.Table{
		"stages":   func() *table.Table { return GroupStages(s, mustParse(t, "stage")).Report() },
		"ranks":    func() *table.Table { return GroupStages(s, mustParse(t, "rank")).Report() },
		"latency":  func() *table.Table { return MeasureLatencies(s).Report() },
		"requests": func() *table.Table { return Requests(s) },
		"request":  func() *table.Table { return WaterfallTable([]*Waterfall{NewWaterfall(s, 0)}) },
	}
	for name, make := range reports {
		for _, f := range table.Formats {
			t.Run(name+"."+string(f), func(t *testing.T) {
				testset.CompareGolden(t, name+"."+string(f), testset.Text(t, make(), f, table.Style{}))
			})
		}
	}
}

func TestGoldenWaterfall(t *testing.T) {
	s := testset.Fixture(t)
	for name, style := range map[string]table.Style{
		"waterfall.text": {}, "waterfall_80_ascii.text": {Width: 80, ASCII: true},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			for r := range s.Requests {
				if err := NewWaterfall(s, r).Write(&b, style); err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n")
			}
			testset.CompareGolden(t, name, b.String())
		})
	}
}
