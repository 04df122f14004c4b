package inspect

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func TestGoldenInspect(t *testing.T) {
	for _, f := range []table.Format{table.FormatText, table.FormatJSON} {
		t.Run(string(f), func(t *testing.T) {
			got := ""
			for _, r := range inspectSet(testset.Fixture(t)) {
				got += testset.Text(t, r, f, table.Style{}) + "\n"
			}
			testset.CompareGolden(t, "inspect."+string(f), got)
		})
	}
}
