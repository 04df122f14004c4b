package testset

import (
	"bytes"
	"math/rand/v2"
)

// A Loss is a way in which spans get lost between servers and a file.
type Loss uint8

const (
	ByBatch   Loss = iota // exporters drop single batches, as their queues are full
	ByLine                // the Collector drops what it got in a fifth of a second
	ByProcess             // the exporter of one process fails for a while
)

// String names how spans get lost.
func (l Loss) String() string { return [...]string{"by batch", "by line", "by process"}[l] }

// Losses are all ways to lose spans.
var Losses = []Loss{ByBatch, ByLine, ByProcess}

// batchStart precedes every batch in a line but the first one.
var batchStart = []byte(`,{"resource":{`)

const lineStart, lineEnd = `{"resourceSpans":[`, "]}\n"

// Lose leaves out a share of the batches of a simulated dump.
func Lose(dump []byte, by Loss, share float64, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(by)+1))
	var lost func(batch []byte) bool
	switch by {
	case ByBatch:
		lost = func([]byte) bool { return rng.Float64() < share }
	case ByProcess:
		lost = outage(dump, share, rng)
	}
	var out []byte
	for line := range bytes.Lines(dump) {
		if by == ByLine {
			if rng.Float64() >= share {
				out = append(out, line...)
			}
			continue
		}
		var kept [][]byte
		for _, batch := range batchesOf(line) {
			if !lost(batch) {
				kept = append(kept, batch)
			}
		}
		if len(kept) > 0 {
			out = append(append(append(out, lineStart...), bytes.Join(kept, []byte(","))...), lineEnd...)
		}
	}
	return out
}

// batchesOf returns the batches of a line.
func batchesOf(line []byte) [][]byte {
	batches := bytes.Split(line[len(lineStart):len(line)-len(lineEnd)], batchStart)
	for i := range batches[1:] {
		batches[i+1] = append(bytes.Clone(batchStart[1:]), batches[i+1]...)
	}
	return batches
}

// outage chooses a process, and batches of it that follow each other: a share of those
// of all processes, or all that it has.
func outage(dump []byte, share float64, rng *rand.Rand) func(batch []byte) bool {
	processOf := func(batch []byte) string {
		head, _, _ := bytes.Cut(batch, []byte(`"scopeSpans"`))
		return string(head)
	}
	counts, total := map[string]int{}, 0
	var processes []string
	for line := range bytes.Lines(dump) {
		for _, batch := range batchesOf(line) {
			process := processOf(batch)
			if counts[process] == 0 {
				processes = append(processes, process)
			}
			counts[process]++
			total++
		}
	}
	process := processes[rng.IntN(len(processes))]
	n := min(int(share*float64(total)+0.5), counts[process])
	from, at := rng.IntN(counts[process]-n+1), 0
	return func(batch []byte) bool {
		if processOf(batch) != process {
			return false
		}
		at++
		return at > from && at <= from+n
	}
}
