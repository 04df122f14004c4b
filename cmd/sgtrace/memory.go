package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// minMemory is the minimum memory budget, in bytes, for decompression buffers and the pieces of input being
// read.
const minMemory = 128_000_000

// leastMemory is the minimum budget, in bytes, for reading these inputs: what the heap holds for each
// request besides the tables adds up.
func leastMemory(files []inputs.Input) int64 {
	const (
		few    = 300_000_000 // bytes of text
		ofMany = 250_000_000
		packed = 12 // compression ratio of a dump
	)
	text := int64(0)
	for i := range files {
		n := size(files[i : i+1])
		if naming.IsCompressed(files[i].Path()) {
			n *= packed
		}
		if text += n; n < 0 || text > few {
			return ofMany
		}
	}
	return minMemory
}

// partOfAvailable: the default budget is 1/partOfAvailable of the available memory. Data that cannot move
// to the temporary file may exceed it, up to half of the machine's memory.
const partOfAvailable = 4

// boundMemory sets the memory budget, and ends the program if it needs more than the bound.
func (c *command) boundMemory(ctx *cli.Context) error {
	total, available := memory.Machine()
	budget, bound, hint := available/partOfAvailable, total/2, "half of this machine's memory; --max-memory allows more"
	if total > 0 {
		budget = max(budget, minMemory)
	}
	if text := ctx.String("max-memory"); text != "" {
		var err error
		if budget, err = parseSize(text); err != nil {
			return commandline.Usage("--max-memory %q: %v", text, err)
		}
		bound, hint = budget, "--max-memory "+text
	}
	memory.SetBudget(budget)
	memory.SetBound(bound)
	if bound > 0 {
		c.unwatch = memory.Watch(func() {
			fmt.Fprintf(c.err, "sgtrace: the inputs need more than %s (%s); take fewer of them, or less of each with --from and --to\n", bytesText(bound), hint)
			c.outputs.abandon()
			os.Exit(exitFailed)
		})
	}
	return nil
}

// noteMemory reports data that was spilled because of too little memory.
func (c *command) noteMemory(*cli.Context) error {
	if c.unwatch != nil {
		c.unwatch()
	}
	if n := memory.Spilled(); n > 0 {
		c.diags.Add(trace.MemorySpilled.Of("", bytesText(n), bytesText(memory.Budget())))
	}
	return nil
}

// parseSize parses a number of bytes: "2GB", "800 MB", "1.5GiB", "1000000000".
func parseSize(text string) (int64, error) {
	text = strings.ToUpper(text)
	number := strings.TrimRight(text, "KMGTIB ")
	unit := strings.TrimSpace(text[len(number):])
	factor, ok := map[string]float64{"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0) || v*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("want a size such as 2GB or 800MB")
	}
	if size := int64(v * factor); size >= minMemory {
		return size, nil
	}
	return 0, fmt.Errorf("%s is the minimum", bytesText(minMemory))
}
