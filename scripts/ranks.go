package main

import (
	"bytes"
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
