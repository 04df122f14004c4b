package overview

import (
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// damages are what may have happened to the lines of a dump before anybody looks at it.
var damages = []func(r *rand.Rand, lines []string) []string{
	func(r *rand.Rand, lines []string) []string { // only a part was copied
		from := r.IntN(len(lines))
		return lines[from:min(len(lines), from+1+len(lines)/(2+r.IntN(40)))]
	},
	func(r *rand.Rand, lines []string) []string { // a Collector kept a sample
		keep := r.Float64()
		return order.Only(lines, func(string) bool { return r.Float64() < keep })
	},
	func(r *rand.Rand, lines []string) []string { // a kind of process did not export, or its exporter was full
		lost := []string{"Scheduler", "Tokenizer", "http_request", "prefill_waiting", "decode_forward"}[r.IntN(5)]
		return order.Only(lines, func(line string) bool { return !strings.Contains(line, lost) || r.Float64() < 0.1 })
	},
	func(r *rand.Rand, lines []string) []string { // digits changed
		return order.Each(lines, func(line string) string {
			at := r.IntN(len(line))
			k := strings.IndexAny(line[at:], "123456789")
			if k < 0 {
				return line
			}
			return line[:at+k] + strconv.Itoa(r.IntN(10)) + line[at+k+1:]
		})
	},
	func(r *rand.Rand, lines []string) []string { // counts of tokens are those of something else
		const key = `completion_tokens","value":{"intValue":"`
		return order.Each(lines, func(line string) string {
			return strings.Replace(line, key, key+[...]string{"", "-", "9223372036854775"}[r.IntN(3)], 1)
		})
	},
}

// However a dump is damaged, the report ends.
func TestDamagedDumps(t *testing.T) {
	for _, name := range []string{"burst_overload", "healthy_pd"} {
		run, err := cluster.Play(cluster.Find(name).Config(3))
		if err != nil {
			t.Fatal(err)
		}
		var dump strings.Builder
		if err := cluster.Write(&dump, run); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(dump.String(), "\n"), "\n")
		testset.EachSeed(testset.FirstSeeds(t, 1), func(seed uint64) {
			for k, damage := range damages {
				r := rand.New(rand.NewPCG(seed, uint64(k)))
				d := testset.Dump{Lines: damage(r, slices.Clone(lines))}
				if err := New(Input{Requests: d.Set(t)}).Document().Write(io.Discard, table.FormatText, table.Style{Width: 100}); err != nil {
					t.Errorf("%s, seed %d, damage %d: %v", name, seed, k, err)
				}
			}
		})
	}
}
