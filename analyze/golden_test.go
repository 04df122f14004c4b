package analyze

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/internal/testset"
)

func TestGoldenReports(t *testing.T) {
	s := testset.Fixture(t)
	reports := map[string]func() *Report{
		"stages":   func() *Report { return GroupStages(s, mustParse(t, "stage")).Report() },
		"ranks":    func() *Report { return GroupStages(s, mustParse(t, "rank")).Report() },
		"latency":  func() *Report { return MeasureLatencies(s).Report() },
		"requests": func() *Report { return Requests(s) },
		"request":  func() *Report { return NewWaterfall(s, 0).Report() },
	}
	for name, make := range reports {
		for _, f := range Formats {
			t.Run(name+"."+string(f), func(t *testing.T) {
				testset.CompareGolden(t, name+"."+string(f), text(t, make(), f, Style{}))
			})
		}
	}
}

func TestGoldenInspect(t *testing.T) {
	for _, f := range []Format{FormatText, FormatJSON} {
		t.Run(string(f), func(t *testing.T) {
			got := ""
			for _, r := range inspectSet(testset.Fixture(t)) {
				got += text(t, r, f, Style{}) + "\n"
			}
			testset.CompareGolden(t, "inspect."+string(f), got)
		})
	}
}

func TestGoldenWaterfall(t *testing.T) {
	s := testset.Fixture(t)
	for name, style := range map[string]Style{
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
