package chrometrace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// rankDocument is the trace of one rank: n kernels with a rank-specific duration, on the same pids
// and correlations as in all ranks.
func rankDocument(rank, n int, headerFirst bool) string {
	header := fmt.Sprintf(`"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 4}, "host_name": "node%d"`, rank, rank/2)
	var events []string
	for i := range n {
		ts := 1_000 + i*100
		events = append(events,
			fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 245, "tid": 245, "ts": %d, "dur": 5, "args": {"correlation": %d}}`, ts, i+1),
			fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": %d, "dur": %d, "args": {"correlation": %d, "device": 0, "stream": 7}}`, ts+20, 10+rank, i+1))
	}
	list := "\"traceEvents\": [\n" + strings.Join(events, ",\n") + "\n]"
	if headerFirst {
		list = header + ",\n" + list
	} else {
		list += ",\n" + header
	}
	return `{"schemaVersion": 1, "baseTimeNanoseconds": 1787000000000000000, ` + list + "}\n"
}

// ranklessDocument is the trace of a process without a rank.
func ranklessDocument(n int) string {
	text := rankDocument(0, n, true)
	at := strings.Index(text, `"traceEvents"`)
	return `{"schemaVersion": 1, "baseTimeNanoseconds": 1787000000000000000, ` + text[at:]
}

// Ranks that wrote concatenated documents stay separate, though their pids, rows, and correlations
// are equal.
func TestDocumentsOfSeveralRanks(t *testing.T) {
	for _, c := range []struct {
		name   string
		text   string
		durs   map[string]int64          // total kernel time in µs, by part
		labels map[string]string         // labels of parts
		codes  map[*trace.Message]string // expected diagnostics
	}{
		{"one", rankDocument(3, 5, true), map[string]int64{"": 5 * 13}, nil, nil},
		{"two", rankDocument(0, 5, true) + rankDocument(1, 6, true), map[string]int64{"rank 0": 50, "rank 1": 66},
			map[string]string{"rank 0": "node0/rank 0", "rank 1": "node0/rank 1"}, nil},
		{"two of which the first says so at its end", rankDocument(0, 5, false) + rankDocument(2, 5, true), map[string]int64{"rank 0": 50, "rank 2": 60},
			map[string]string{"rank 0": "node0/rank 0", "rank 2": "node1/rank 2"}, nil},
		{"one behind what has no rank", `{"traceEvents": []}` + rankDocument(1, 5, true), map[string]int64{"": 55}, nil, nil},
		{"twice the same", strings.Repeat(rankDocument(1, 5, true), 2), map[string]int64{"rank 1": 55, "rank 1 (2)": 55},
			map[string]string{"rank 1": "node0/rank 1", "rank 1 (2)": "node0/rank 1"}, nil},
		{"twice the same, which has no rank", strings.Repeat(ranklessDocument(5), 2), map[string]int64{"": 50}, nil,
			map[*trace.Message]string{trace.CaptureRepeated: "its document 2 has the same events as document 1"}},
		{"twice the same, longer than a block", strings.Repeat(ranklessDocument(9000), 2), map[string]int64{"": 90_000}, nil,
			map[*trace.Message]string{trace.CaptureRepeated: "its document 2 has the same events as document 1"}},
		{"again behind another", ranklessDocument(5) + ranklessDocument(6) + ranklessDocument(5), map[string]int64{"": 110}, nil,
			map[*trace.Message]string{trace.CaptureRepeated: "its document 3 has the same events as document 1"}},
		{"the same bounds, other events", ranklessDocument(5) + strings.Replace(ranklessDocument(5), `"dur": 10`, `"dur": 11`, 1), map[string]int64{"": 101}, nil, nil},
		{"longer than a block", rankDocument(0, 9000, true) + rankDocument(1, 9000, true) + rankDocument(3, 9000, true),
			map[string]int64{"rank 0": 90_000, "rank 1": 99_000, "rank 3": 117_000},
			map[string]string{"rank 0": "node0/rank 0", "rank 1": "node0/rank 1", "rank 3": "node1/rank 3"}, nil},
		{"too late", rankDocument(0, 5, true) + rankDocument(1, 9000, false), map[string]int64{"": 50 + 99_000}, nil,
			map[*trace.Message]string{trace.TraceMixed: "rank 0 and rank 1 wrote"}},
		{"one within the other", strings.Replace(rankDocument(0, 5, true), "\n]}", ",\n"+rankDocument(1, 5, true)+"]}", 1), nil, nil,
			map[*trace.Message]string{trace.TraceMixed: "rank 0 and rank 1 wrote"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var diags trace.Diags
			p, err := Read("ranks.json", strings.NewReader(c.text), Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &diags})
			if err != nil {
				t.Fatal(err)
			}
			durs := map[string]int64{}
			for _, e := range p.Events {
				if row := &p.Rows[e.Place.Row()]; row.Kind == profile.RowStream {
					durs[row.Part] += e.Dur / 1000
				}
			}
			if c.durs != nil && !maps.Equal(durs, c.durs) || !maps.Equal(p.Meta.Parts, c.labels) {
				t.Errorf("kernels last %v, want %v; labels %v, want %v", durs, c.durs, p.Meta.Parts, c.labels)
			}
			for message, want := range c.codes {
				if !slices.ContainsFunc(diags.All(), func(d trace.Diag) bool { return d.Message == message && strings.Contains(d.Msg, want) }) {
					t.Errorf("got %v, want %s", diags.All(), message.Code)
				}
			}
			if list := diags.All(); len(c.codes) == 0 && len(list) > 0 {
				t.Error(list)
			}
		})
	}
}

// fusedDocument is TraceLens's fusion of ranks: their pids are shifted apart, and process names
// contain the ranks.
func fusedDocument(names ...string) string {
	events := []string{`{"ph": "i", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 1000}`}
	for i, name := range names {
		cpu, gpu := i*1_000_000+245, i*1_000_000
		for n := range 5 {
			ts, correlation := 1_000+n*100, i*1000+n+1
			events = append(events,
				fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": %d, "tid": %d, "ts": %d, "dur": 5, "args": {"correlation": %d}}`, cpu, cpu, ts, correlation),
				fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "gemm", "pid": %d, "tid": 7, "ts": %d, "dur": %d, "args": {"correlation": %d, "device": 0, "stream": 7}}`, gpu, ts+20, 10+i, correlation))
		}
		events = append(events,
			fmt.Sprintf(`{"ph": "M", "name": "process_name", "pid": %d, "tid": 0, "args": {"name": "%s - CPU"}}`, cpu, name),
			fmt.Sprintf(`{"ph": "M", "name": "process_name", "pid": %d, "tid": 0, "args": {"name": "%s - GPU"}}`, gpu, name))
	}
	return `{"traceEvents": [` + strings.Join(events, ",\n") + `]}`
}

// Processes named after ranks belong to these ranks if there are several.
func TestProcessesNamedAfterRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		text  string
		parts map[string]int64 // total kernel time in µs
	}{
		{"two", fusedDocument("RANK 0", "RANK 3"), map[string]int64{"rank 0": 50, "rank 3": 55}},
		{"lower case", fusedDocument("rank 12", "rank 4"), map[string]int64{"rank 12": 50, "rank 4": 55}},
		{"behind the name", strings.NewReplacer("RANK 0 - CPU", "python_rank0", "RANK 0 - GPU", "python_rank0", "RANK 1 - CPU", "python_rank1", "RANK 1 - GPU", "python_rank1").Replace(fusedDocument("RANK 0", "RANK 1")),
			map[string]int64{"rank 0": 50, "rank 1": 55}},
		{"one", fusedDocument("RANK 2"), map[string]int64{"": 50}},
		{"beside another process", fusedDocument("RANK 0", "router", "RANK 1"), map[string]int64{"rank 0": 50, "": 55, "rank 1": 60}},
		{"other names", fusedDocument("rankings 1", "frank2"), map[string]int64{"": 105}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var diags trace.Diags
			p, err := Read("fused.json", strings.NewReader(c.text), Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &diags})
			if err != nil {
				t.Fatal(err)
			}
			parts, labels := map[string]int64{}, map[string]string{}
			for _, e := range p.Events {
				if row := &p.Rows[e.Place.Row()]; row.Kind == profile.RowStream {
					parts[row.Part] += e.Dur / 1000
				}
			}
			for _, row := range p.Rows {
				if row.Part != "" {
					labels[row.Part] = row.Part
				}
				if row.Kind == profile.RowOther && row.Part == "" && len(p.Meta.Parts) > 0 {
					t.Error("what is about the profiler is of no rank")
				}
			}
			if !maps.Equal(parts, c.parts) {
				t.Errorf("kernels last %v, want %v", parts, c.parts)
			}
			if !maps.Equal(p.Meta.Parts, labels) {
				t.Errorf("labels %v, want %v", p.Meta.Parts, labels)
			}
		})
	}
}
