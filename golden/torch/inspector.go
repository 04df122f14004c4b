package torch

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// InspectorConfig is a run recorded by NCCL's Inspector.
type InspectorConfig struct {
	Seed         uint64
	Ranks, Hosts int
	Collectives  int
	// Late is a rank that arrives Lateness µs late, from collective Since on; -1 is none.
	Late            int
	Lateness, Since int
	// Verbose writes the times of kernels, and Interval is the interval between writes in µs; 0 is once, at the end.
	Verbose  bool
	Interval int64
}

// InspectorTruth is the simulated history.
type InspectorTruth struct {
	Begun int64 // time of the first collective for which the late rank was late, Unix µs
	Ends  []int64
	Took  [][]int64 // of each collective, by rank, µs
}

// WriteInspector writes a log of each rank into a folder, with the keys of NCCL 2.28 in their order.
func WriteInspector(dir string, c InspectorConfig) (*InspectorTruth, error) {
	r := rand.New(rand.NewPCG(c.Seed, 37))
	truth := &InspectorTruth{}
	numbers := map[string]int{}
	lines := make([][]func(written int64) string, c.Ranks)
	at := int64(1_787_000_000_000_000)
	for i := range c.Collectives {
		op := []string{"AllReduce", "AllReduce", "AllReduce", "AllGather", "ReduceScatter"}[r.IntN(5)]
		size := []int{16384, 262144, 4 << 20}[r.IntN(3)]
		sn := numbers[op]
		numbers[op]++
		came := make([]int64, c.Ranks)
		for k := range came {
			if came[k] = at + int64(r.ExpFloat64()*8); k == c.Late && i >= c.Since {
				came[k] += int64(float64(c.Lateness) * (0.7 + 0.6*r.Float64()))
			}
		}
		if i == c.Since {
			truth.Begun = came[max(0, c.Late)]
		}
		end := slices.Max(came) + int64(15+size/200_000)
		took := make([]int64, c.Ranks)
		for k := range came {
			took[k] = end - came[k]
			lines[k] = append(lines[k], c.line(op, sn, size, k, came[k], end))
		}
		truth.Ends, truth.Took = append(truth.Ends, end), append(truth.Took, took)
		at = end + 300 + int64(r.ExpFloat64()*500)
	}
	for k := range lines {
		if err := c.write(dir, k, lines[k], truth.Ends); err != nil {
			return nil, err
		}
	}
	return truth, nil
}

// line returns a function that formats a collective of a rank.
func (c *InspectorConfig) line(op string, sn, size, rank int, came, end int64) func(int64) string {
	took := end - came
	trace := ""
	if c.Verbose {
		trace = fmt.Sprintf(`,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]}`+
			`,"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}`, came-60, came-55, came+2, end+3, end+2)
	}
	return func(written int64) string {
		bandwidth := float64(size) / float64(took) / 1e3
		return fmt.Sprintf(`{"header":{"id":"0x7f8c496ae9f661","rank":%d,"n_ranks":%d,"nnodes":%d},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"node%d","pid":%d},`+
			`"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%f,"coll_busbw_gbs":%f%s}}`,
			rank, c.Ranks, c.Hosts, written, rank*c.Hosts/c.Ranks, 4100+rank, op, sn, size, took, bandwidth, bandwidth, trace)
	}
}

// write writes the output of a rank's thread each time it looks.
func (c *InspectorConfig) write(dir string, rank int, lines []func(int64) string, ends []int64) error {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("node%d-pid%d.log", rank*c.Hosts/c.Ranks, 4100+rank)))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	last := ends[len(ends)-1] + 1000
	looked := int64(0)
	for i, line := range lines {
		written := last
		if c.Interval > 0 {
			written = (ends[i]/c.Interval+1)*c.Interval + int64(rank*37)
		}
		looked = max(written, looked+2) // a line takes 2 µs
		fmt.Fprintln(w, line(looked))
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
