//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Of a run that has nothing but collectives: how many each rank has, and which rank is late.
const (
	collectivesOfRank = 5000
	batchOfRanks      = 64 // whose traces lie on the disk at a time
	lateBy            = 300_000
	captureStart      = 4_033_045_306_000_000 // us
)

// arrivals prints a table of what it costs to say who is late, of so many ranks in collectives of
// eight. Traces are written, extracted, and removed a few ranks at a time.
func (b *bench) arrivals(list []string) error {
	fmt.Println("| ranks | arrivals | dataset MB | extract CPU s | MB | who is late CPU s | MB | report CPU s | MB | found |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	return each(list, b.arrivalsOf)
}

func (b *bench) arrivalsOf(ranks int) error {
	traces, dataset := filepath.Join(b.dir, tracesName), filepath.Join(b.dir, datasetName)
	defer os.RemoveAll(traces)
	defer os.RemoveAll(dataset)
	late := ranks / 3
	var extract, who, all cost
	for first := 0; first < ranks; first += batchOfRanks {
		for rank := first; rank < min(first+batchOfRanks, ranks); rank++ {
			if err := writeCollectives(traces, rank, ranks, late); err != nil {
				return err
			}
		}
		if err := b.measure(&extract, "extract", "-o", datasetName, tracesName); err != nil {
			return err
		}
		if err := os.RemoveAll(traces); err != nil {
			return err
		}
	}
	stored, err := sizeOf(dataset)
	if err != nil {
		return err
	}
	if err := b.measure(&who, "report", "--by-rank", "--table", "collectives.ranks", datasetName); err != nil {
		return err
	}
	out, err := b.output(&all, "report", datasetName)
	if err != nil {
		return err
	}
	found := "no"
	if strings.Contains(string(out), rankName(late)+" arrives last") {
		found = rankName(late)
	}
	fmt.Printf("| %d | %d | %.1f | %.1f | %d | %.1f | %d | %.1f | %d | %s |\n", ranks, ranks*collectivesOfRank, float64(stored)/1e6,
		extract.cpu.Seconds(), extract.most/1e6, who.cpu.Seconds(), who.most/1e6, all.cpu.Seconds(), all.most/1e6, found)
	return nil
}

// rankName returns the name of a rank in reports.
func rankName(rank int) string { return "rank " + strconv.Itoa(rank) }

// writeCollectives writes the trace of a rank: all-reduces of the ranks of its host.
func writeCollectives(dir string, rank, ranks, late int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	host, tp := rank/perHost, rank%perHost
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("rank%d_trace.json", rank)))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintf(w, `{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}, "host_name": "node-%d", "displayTimeUnit": "ms", `+
		`"baseTimeNanoseconds": 1782967788000000000, "traceEvents": [`, rank, ranks, host)
	group := host * perHost
	r := rand.New(rand.NewPCG(1, uint64(rank)))
	for i := range collectivesOfRank {
		begin, end := int64(i)*2_000_000, int64(i)*2_000_000+450_000
		at := begin + r.Int64N(50_000)
		if rank == late {
			at += lateBy
		}
		fmt.Fprintf(w, `%c{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": %d, "tid": 7, `+
			`"ts": %d.%03d, "dur": %d.%03d, "args": {"device": %[2]d, "stream": 7, "correlation": %[7]d, "Collective name": "allreduce", "In msg nelems": 8192, `+
			`"Out msg nelems": 8192, "Group size": %[8]d, "dtype": "BFloat16", "Process Group Name": "%[9]d", "Process Group Ranks": "[%[10]d, %[11]d, %[12]d, %[13]d, %[14]d, %[15]d, %[16]d, %[17]d]", "Seq": %[18]d}}`,
			separator(i), tp, captureStart+at/1000, at%1000, (end-at)/1000, (end-at)%1000, i+1, perHost, host+1,
			group, group+1, group+2, group+3, group+4, group+5, group+6, group+7, i+1)
		w.WriteByte('\n')
	}
	w.WriteString("]}\n")
	return w.Flush()
}

func separator(i int) rune {
	if i == 0 {
		return ' '
	}
	return ','
}
