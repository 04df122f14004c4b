package tokens

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// Report makes the table of the tokens of steps.
func (t *Tokens) Report() *table.Table {
	fields := []table.Field[Row]{
		table.TextColumn("kind", "kind of step: prefill (EXTEND), decode, or other (mixed and idle steps)", func(r *Row) string { return profilewalk.StepKinds[r.Kind] }),
		table.TextColumn("batch", "requests in the batch", func(r *Row) string { return profilewalk.BatchWords(r.MinBatch, r.MaxBatch) }),
		table.TextColumn("rank", "rank, or name of a process that is not a rank", func(r *Row) string { return r.Rank }),
		table.CountColumn("steps", "number of server steps", func(r *Row) int64 { return int64(r.Steps) }),
		table.CountColumn("known steps", "number of steps whose names give their tokens; the next columns cover only these", func(r *Row) int64 { return int64(r.Known.N) }).InDetail(),
		knownTokens("tokens", "total tokens that the model computed", func(r *Row) int64 { return r.Known.Total }),
		knownTokens("decoded", "decode tokens; all others are prefill tokens", func(r *Row) int64 { return r.Decoded }).InDetail(),
		table.NumberColumn("per step", "mean tokens per step", func(r *Row) float64 {
			if r.Known.N == 0 {
				return math.NaN()
			}
			return float64(r.Known.Total) / float64(r.Known.N)
		}),
		knownTokens("p50", "median tokens per step, nearest rank", func(r *Row) int64 { return r.Known.P50 }),
		table.NumberColumn("per second in steps", "tokens per second of step time on the device, from the start of the first to the end of the last kernel or copy of a step; only steps that launched anything, without unrecorded work", func(r *Row) float64 { return r.onDevice() }),
		table.NumberColumn("per second captured", "tokens per second of captured time; empty unless the tokens of all steps are known", func(r *Row) float64 { return r.over(r.Captured) }),
		launched("graph", "number of decode steps of which CUDA graphs launched at least half of the kernels", func(u *gpu.GraphUse) int { return u.Graph.N }),
		launched("no graph", "number of decode steps of which the host launched most kernels one by one", func(u *gpu.GraphUse) int { return u.Eager.N }),
		launched("beyond graphs", "number of decode steps without a CUDA graph that have more requests than any of the rank's decode steps with one", func(u *gpu.GraphUse) int { return u.Beyond }),
	}
	r := table.New("sgtrace.report.tokens/v1", "Tokens by kind of step, batch size and rank", t.Rows, fields)
	r.Stay("per second in steps").Leave("p50", "steps")
	t.note(r)
	return r
}

// knownTokens returns a column for steps whose names contain their tokens.
func knownTokens(name, doc string, of func(*Row) int64) table.Field[Row] {
	return table.CountColumn(name, doc, func(r *Row) int64 {
		if r.Known.N == 0 {
			return request.Unknown
		}
		return of(r)
	})
}

// launched returns a column for decode steps only.
func launched(name, doc string, of func(*gpu.GraphUse) int) table.Field[Row] {
	return table.CountColumn(name, doc, func(r *Row) int64 {
		if r.Graphs.Graph.N+r.Graphs.Eager.N == 0 {
			return request.Unknown
		}
		return int64(of(&r.Graphs))
	})
}

// note adds for how many steps the tokens are unknown, and which batches are too large for graphs.
func (t *Tokens) note(r *table.Table) {
	steps, known, beyond := 0, 0, 0
	for i := range t.Rows {
		row := &t.Rows[i]
		steps, known, beyond = steps+row.Steps, known+row.Known.N, beyond+row.Graphs.Beyond
	}
	if known < steps {
		r.Note("the names of %s of %s do not tell how many tokens they compute", words.Thousands(int64(steps-known)), words.Counted(steps, "step"))
	}
	if beyond > 0 {
		r.Note("%s had more requests than any that ran as a CUDA graph; the largest batch with a graph is an option of the server: cuda-graph-max-bs of SGLang, cudagraph_capture_sizes of vLLM",
			words.Counted(beyond, "decode step"))
	}
}

// rateNames names the kinds of steps that have rates. In StepOther, only mixed batches have tokens in their names.
var rateNames = [...]struct {
	kind profile.StepKind
	name string
}{{profile.StepPrefill, "prefill"}, {profile.StepDecode, "decode"}, {profile.StepOther, "mixed"}}

// Words says how many tokens per second ranks compute in steps of each kind: the median of the ranks with such steps;
// "" if no names contain tokens.
func (t *Tokens) Words() string {
	var rates []string
	for _, k := range rateNames {
		var of []float64
		for i := range t.Ranks {
			if rate := t.Ranks[i].ByKind[k.kind].onDevice(); rate > 0 {
				of = append(of, rate)
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		text := fmt.Sprintf("%s/s in %s steps", words.Thousands(int64(math.Round(request.NearestRank(of, 50)))), k.name)
		if len(of) > 1 {
			text += fmt.Sprintf(" (median of %d ranks)", len(of))
		}
		rates = append(rates, text)
	}
	return strings.Join(rates, ", ")
}
