package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
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

// writeTraces writes PyTorch traces of the ranks of one server on two hosts.
func writeTraces(dir string, mb, ranks int) error {
	config := simulator.DefaultConfig(1)
	config.Mode = simulator.Unified
	config.Unified = simulator.Parallel{TP: ranks, PP: 1, DP: 1}
	config.RanksPerHost, config.HostSkew, config.HostDrift = max(1, ranks/2), 1734500*time.Nanosecond, 12
	config.Straggler = simulator.Straggler{TP: ranks - 1, Factor: 1.06}
	run, err := simulator.Play(config)
	if err != nil {
		return err
	}
	recording := torch.DefaultConfig(run)
	recording.From, recording.To, recording.Layers, recording.Stacks = 0, 0, 80, 6
	for size := 0; size < mb*1e6; {
		recording.To += 200 * time.Millisecond
		var n counter
		if _, err := torch.Write(&n, run, recording, 0); err != nil {
			return err
		}
		if int(n) == size {
			return fmt.Errorf("the whole run makes %d MB", size/1e6)
		}
		size = int(n)
	}
	_, err = torch.WriteDir(dir, run, recording)
	return err
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// perHost is how many ranks share a host, all of one TP group.
const perHost = 8

// writeRanks writes the recordings of so many ranks, small ones, and the dump of their requests.
// A quarter of the hosts prefills.
func writeRanks(dir string, ranks int) error {
	c := simulator.DefaultConfig(1)
	hosts := max(2, ranks/perHost)
	c.Prefill = simulator.Parallel{TP: perHost, PP: 1, DP: max(1, hosts/4)}
	c.Decode = simulator.Parallel{TP: perHost, PP: 1, DP: hosts - c.Prefill.DP}
	c.RanksPerHost, c.HostSkew = perHost, 300*time.Microsecond
	c.Requests, c.Rate = 30*hosts, 4*float64(hosts)
	run, err := simulator.Play(c)
	if err != nil {
		return err
	}
	t := torch.DefaultConfig(run)
	t.To, t.Layers, t.Stacks, t.Shapes = t.From+250*time.Millisecond, 4, 0, false
	if err := golden.WriteDir(dir, run, &t, nil); err != nil {
		return err
	}
	return forgetTruth(dir)
}

// forgetTruth removes what was planted, which is no input: reports of folders would say so.
func forgetTruth(dir string) error { return os.Remove(filepath.Join(dir, "truth.json")) }

// writeDays writes a folder for each day of some servers: see [golden.Weeks].
func writeDays(dir string, days, servers int) error {
	c := golden.DefaultWeeks(days, servers)
	for day := range days {
		if err := c.WriteDay(dir, day); err != nil {
			return err
		}
		if err := forgetTruth(golden.DayDir(dir, day)); err != nil {
			return err
		}
	}
	return nil
}

// Of a run that has nothing but collectives: how many each rank has, and which rank is late.
const (
	collectivesOfRank = 5000
	lateBy            = 300_000
	captureStart      = 4_033_045_306_000_000 // us
)

// writeCollectives writes the traces of the ranks from one to another, of so many in all. Each has
// all-reduces with the ranks of its host. A third of the way through all ranks, one is late.
func writeCollectives(dir string, from, to, all int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for rank := from; rank < min(to, all); rank++ {
		var b bytes.Buffer
		host := rank / perHost
		var group []string
		for i := range perHost {
			group = append(group, strconv.Itoa(host*perHost+i))
		}
		fmt.Fprintf(&b, `{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}, "host_name": "node-%d", "displayTimeUnit": "ms", `+
			`"baseTimeNanoseconds": 1782967788000000000, "traceEvents": [`, rank, all, host)
		rng := rand.New(rand.NewPCG(1, uint64(rank)))
		for i := range collectivesOfRank {
			begin := int64(i) * 2_000_000
			at := begin + rng.Int64N(50_000)
			if rank == all/3 {
				at += lateBy
			}
			took := begin + 450_000 - at // all end together
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": %d, "tid": 7, `+
				`"ts": %d.%03d, "dur": %d.%03d, "args": {"device": %[1]d, "stream": 7, "correlation": %[6]d, "Collective name": "allreduce", "In msg nelems": 8192, `+
				`"Out msg nelems": 8192, "Group size": %[7]d, "dtype": "BFloat16", "Process Group Name": "%[8]d", "Process Group Ranks": "[%[9]s]", "Seq": %[6]d}}`+"\n",
				rank%perHost, captureStart+at/1000, at%1000, took/1000, took%1000, i+1, perHost, host+1, strings.Join(group, ", "))
		}
		b.WriteString("]}\n")
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d_trace.json", rank)), b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
