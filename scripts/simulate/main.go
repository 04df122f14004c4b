// Command simulate writes inputs: scenarios of clusters with what there is to find in them, and data for
// benchmarks, which has as many rows as wanted.
//
//	go run ./scripts/simulate scenarios                                  # which there are
//	go run ./scripts/simulate scenarios -name death -seed 3 -o DIR       # DIR/death-3-l1.jsonl and .truth.json
//	go run ./scripts/simulate scenarios -name death -calm -o DIR         # the same without its faults
//	go run ./scripts/simulate scenarios -name throttled -logs -o DIR     # logs, records, metrics: DIR/throttled-1
//
//	go run ./scripts/simulate traces [-mb 100] [-ranks 8] DIR            # of PyTorch, of one server on two hosts
//	go run ./scripts/simulate export [-rows N] [-samples N] DIR          # of Nsight Systems, of one host
//	go run ./scripts/simulate repeat -times 10 DUMP | sgtrace report -   # a large dump of a small one
package main

import (
	"errors"
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	kinds := map[string]func(args []string) error{"scenarios": scenarios, "traces": traces, "export": export, "repeat": repeated}
	if len(os.Args) < 2 || kinds[os.Args[1]] == nil {
		log.Fatal("usage: simulate scenarios | traces | export | repeat")
	}
	if err := kinds[os.Args[1]](os.Args[2:]); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
}

func traces(args []string) error {
	flags := flag.NewFlagSet("traces", flag.ExitOnError)
	mb := flags.Int("mb", 100, "megabytes of JSON for each rank, at least")
	ranks := flags.Int("ranks", 8, "number of ranks")
	path, err := parse(flags, args)
	if err != nil {
		return err
	}
	return writeTraces(path, *mb, *ranks)
}

func export(args []string) error {
	flags := flag.NewFlagSet("export", flag.ExitOnError)
	rows := flags.Int("rows", 1_000_000, "rows of kernels and calls")
	samples := flags.Int("samples", 0, "samples of threads")
	path, err := parse(flags, args)
	if err != nil {
		return err
	}
	return writeExport(path, *rows, *samples)
}

// repeated writes to standard output, since the disk may be too small.
func repeated(args []string) error {
	flags := flag.NewFlagSet("repeat", flag.ExitOnError)
	times := flags.Int("times", 10, "write the dump so many times, each with other requests and later")
	path, err := parse(flags, args)
	if err != nil {
		return err
	}
	return repeat(os.Stdout, path, *times)
}

// parse parses flags that one path follows.
func parse(flags *flag.FlagSet, args []string) (path string, err error) {
	flags.Parse(args)
	if flags.NArg() != 1 {
		return "", errors.New("name one file or folder")
	}
	return flags.Arg(0), nil
}
