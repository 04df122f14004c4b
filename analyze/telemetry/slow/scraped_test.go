package slow

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A served is what is asked of a server at a scrape, in tokens a second, and how many times as long as usual its steps take.
type served func(k int) (asked, slower float64)

// levelsOf are the scrapes of servers whose tokens take 10 ms and 0.3 ms for each request in the batch: as many run as keep up with
// what is asked. rates tells whether they say how many tokens come out.
func levelsOf(engine string, rates bool, servers ...served) *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "Prometheus range")
	r := rand.New(rand.NewPCG(7, 7))
	for i, server := range servers {
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: string(rune('a' + i)), Engine: engine, Role: "unified"}), Rank: trace.Rank{DP: -1, PP: -1, TP: 0, EP: -1}, GPU: series.NoGPU})
		for k := range 80 {
			at := trace.Time(1_700_000_000+15*k) * 1e9
			asked, slower := server(k)
			asked *= 1 + 0.2*r.NormFloat64()
			running := math.Max(1, math.Round(asked*0.010*slower/(1-math.Min(0.9, asked*0.0003*slower))))
			f.Add(f.Series(series.Running, p), at, running)
			f.Add(f.Series(series.Queued, p), at, 0)
			f.Add(f.Series(series.KVUsage, p), at, running/2)
			f.Add(f.Series(series.KVTokens, p), at, running*500)
			if rates {
				f.Add(f.Series(series.Generation, p), at, running/(slower*(0.010+0.0003*running)))
			}
		}
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// Scrapes of levels tell of a server that becomes slower: as many tokens come out, and more requests run for them. More that is
// asked of it looks otherwise.
func TestSlowerByLevels(t *testing.T) {
	for _, c := range []struct {
		name string
		of   served
		want string
	}{
		{"nothing changes", func(int) (float64, float64) { return 900, 1 }, ""},
		{"twice as slow from the 40th scrape on", func(k int) (float64, float64) { return 900, 1 + float64(k/40) }, "although no more come out"},
		{"more is asked", func(k int) (float64, float64) { return 900 * (1 + 1.2*float64(k/40)), 1 }, ""},
	} {
		found, _ := Slower(levelsOf("SGLang", true, c.of))
		got := texts(found)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		for _, f := range found {
			const changed, scrape = trace.Time(1_700_000_000+15*40) * 1e9, trace.Time(15e9)
			if f.Confidence != "likely" || f.Since < changed-scrape || f.Since > changed+scrape {
				t.Errorf("%s: %s since %d", c.name, f.Confidence, f.Since/1e9)
			}
		}
	}
}

// Of servers that share work, one that has more in its batch gets more, or has each for longer: which, how many tokens come out
// tells. Without these nobody knows.
func TestMoreInTheBatchOfOne(t *testing.T) {
	usual := func(int) (float64, float64) { return 900, 1 }
	slow := func(k int) (float64, float64) { return 900, 1 + float64(k/40) }
	more := func(k int) (float64, float64) { return 900 * (1 + 1.2*float64(k/40)), 1 }
	for _, c := range []struct {
		name   string
		engine string
		rates  bool
		one    served
		want   string
	}{
		{"slow", "SGLang", true, slow, "each stays longer there"},
		{"slow, of which nothing tells", "vLLM", false, slow, "more come to it, or each stays longer, which these metrics do not show"},
		{"gets more, of which nothing tells", "vLLM", false, more, "more come to it, or each stays longer, which these metrics do not show"},
		{"gets more", "SGLang", true, more, "since"},
		{"like the others", "vLLM", false, usual, ""},
	} {
		found, _ := Imbalances(levelsOf(c.engine, c.rates, usual, c.one, usual))
		got := texts(found)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || c.name == "gets more" && strings.Contains(got, "longer") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func texts(found []finding.Finding) string {
	var text strings.Builder
	for _, f := range found {
		text.WriteString(f.Text + "\n")
	}
	return text.String()
}
