package readback

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Each engine's percentile function with our definition, nearest rank.
var nearestRank = map[string]string{"duckdb": "quantile_disc(x, 0.5)", "clickhouse": "quantilesExactWeighted(0.5)(x, 1)[1]"}

func TestEngines(t *testing.T) {
	cache := os.Getenv("SGTRACE_SCALE")
	if cache == "" {
		t.Skip("$SGTRACE_SCALE is not set: 'make scale' sets it")
	}
	for _, e := range SQLEngines() {
		t.Run(e.Dialect, func(t *testing.T) {
			if err := e.Install(t.Context(), cache); errors.Is(err, ErrUnavailable) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			results, err := e.Query(t.Context(), "create view v as select 1 as x union all select 2 union all select 3 union all select 4;\n",
				"select count(*) as n, "+nearestRank[e.Dialect]+" as p50, max(x) > 9 as no, null as nothing from v")
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			if got, want := fmt.Sprint(r.Columns, r.Rows[0][:2], r.Rows[0][3]), "[n p50 no nothing] [4 2] <nil>"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
