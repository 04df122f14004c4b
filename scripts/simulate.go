package main

import (
	"errors"
	"flag"
	"os"
)

// kinds are what there is to write; each defines its flags, and returns what writes to the path behind
// them.
var kinds = map[string]func(flags *flag.FlagSet) (write func(path string) error){
	"traces": func(flags *flag.FlagSet) func(string) error {
		mb := flags.Int("mb", 100, "megabytes of JSON for each rank, at least")
		ranks := flags.Int("ranks", 8, "number of ranks")
		return func(dir string) error { return writeTraces(dir, *mb, *ranks) }
	},
	"export": func(flags *flag.FlagSet) func(string) error {
		rows := flags.Int("rows", 1_000_000, "rows of kernels and calls")
		samples := flags.Int("samples", 0, "samples of threads")
		return func(dir string) error { return writeExport(dir, *rows, *samples) }
	},
	"ranks": func(flags *flag.FlagSet) func(string) error {
		ranks := flags.Int("ranks", 64, "number of ranks, a multiple of 8")
		return func(dir string) error { return writeRanks(dir, *ranks) }
	},
	"collectives": func(flags *flag.FlagSet) func(string) error {
		from, to := flags.Int("from", 0, "the first rank to write"), flags.Int("to", 64, "the one behind the last")
		all := flags.Int("of", 64, "number of all ranks")
		return func(dir string) error { return writeCollectives(dir, *from, *to, *all) }
	},
	"days": func(flags *flag.FlagSet) func(string) error {
		days, servers := flags.Int("days", 30, "number of days"), flags.Int("servers", 20, "number of servers")
		return func(dir string) error { return writeDays(dir, *days, *servers) }
	},
	// To standard output, since the disk may be too small.
	"repeat": func(flags *flag.FlagSet) func(string) error {
		times := flags.Int("times", 10, "write the dump so many times, each with other requests and later")
		return func(dump string) error { return repeat(os.Stdout, dump, *times) }
	},
	"scenarios": func(flags *flag.FlagSet) func(string) error { return scenarios(flags) },
}

// simulate writes inputs: scenarios of clusters with what there is to find in them, and data for
// benchmarks, which has as many rows as wanted.
//
//	go run ./scripts simulate scenarios                                  # which there are
//	go run ./scripts simulate scenarios -name death -seed 3 -o DIR       # DIR/death-3-l1.jsonl and .truth.json
//	go run ./scripts simulate scenarios -name death -calm -o DIR         # the same without its faults
//	go run ./scripts simulate scenarios -name throttled -logs -o DIR     # logs, records, metrics: DIR/throttled-1
//
//	go run ./scripts simulate traces [-mb 100] [-ranks 8] DIR            # of PyTorch, of one server on two hosts
//	go run ./scripts simulate export [-rows N] [-samples N] DIR          # of Nsight Systems, of one host
//	go run ./scripts simulate ranks [-ranks N] DIR                       # a dump and small traces of many ranks
//	go run ./scripts simulate collectives [-from N] [-to N] [-of N] DIR  # traces of ranks that have nothing else
//	go run ./scripts simulate days [-days N] [-servers N] DIR            # a folder for each day: DIR/day00
//	go run ./scripts simulate repeat -times 10 DUMP | sgtrace report -   # a large dump of a small one
func simulate(args []string) error {
	functions := map[string]func(args []string) error{}
	for name, kind := range kinds {
		functions[name] = func(args []string) error {
			flags := flag.NewFlagSet(name, flag.ExitOnError)
			write := kind(flags)
			flags.Parse(args)
			if flags.Arg(0) == "" && name != "scenarios" {
				return errors.New("say into which folder, or of what")
			}
			return write(flags.Arg(0))
		}
	}
	choose("simulate", functions, args)
	return nil
}
