package torch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// HangForm is the form of dumps.
type HangForm uint8

const (
	AsPickle HangForm = iota // as torch::jit::Pickler does
	AsJSON
	// WatchdogLog is one log of all ranks, with the messages of PyTorch's watchdog. It has no types, and for a rank in which
	// nothing timed out only the progress of the group of all ranks.
	WatchdogLog
	// NCCLLogs is NCCL's log with NCCL_DEBUG=INFO, a file per rank; NCCLLog is one file.
	NCCLLogs
	NCCLLog
)

// WriteHang simulates a job, and writes a dump for each of its ranks into a folder.
func WriteHang(dir string, c HangConfig, form HangForm) (HangTruth, error) {
	j := newJob(c)
	j.plant()
	j.run()
	for len(j.truth.Silent) < c.Silent {
		r := j.r.IntN(len(j.program))
		if !slices.Contains(j.truth.Of, r) && !slices.Contains(j.truth.Silent, r) {
			j.truth.Silent = append(j.truth.Silent, r)
		}
	}
	slices.Sort(j.truth.Silent)
	if form >= WatchdogLog {
		return j.truth, j.writeLogs(dir, form)
	}
	for rank := range j.program {
		if slices.Contains(j.truth.Silent, rank) {
			continue
		}
		name, data := fmt.Sprintf("nccl_trace_rank_%d", rank), []byte(nil)
		if form == AsJSON {
			name += ".json"
			var err error
			if data, err = json.Marshal(plain(j.dump(rank))); err != nil {
				return j.truth, err
			}
		} else {
			data = pickled(2, j.dump(rank))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return j.truth, err
		}
	}
	return j.truth, nil
}

// plain converts a value to types of encoding/json.
func plain(v any) any {
	switch v := v.(type) {
	case dict:
		m := map[string]any{}
		for _, f := range v {
			m[f[0].(string)] = plain(f[1])
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = plain(x)
		}
		return list
	case pair:
		return []any{plain(v[0]), plain(v[1])}
	}
	return v
}

// dump returns the entries in the recorder of a rank, with the keys of version 2.9 in their order.
func (j *job) dump(rank int) dict {
	config, status := dict{}, dict{}
	for id, g := range j.mine[rank] {
		ranks, _ := json.Marshal(j.groups[g].ranks)
		config = append(config, [2]any{j.groupName(g), dict{{"name", j.groupName(g)}, {"desc", j.groups[g].desc}, {"ranks", string(ranks)}}})
		enqueued, completed := int64(-1), int64(-1)
		for i := range j.program[rank][:j.entered[rank]] {
			if o := &j.program[rank][i]; o.group == g {
				if enqueued = o.seq; o.done {
					completed = o.seq
				}
			}
		}
		status = append(status, [2]any{fmt.Sprint(id), dict{{"last_enqueued_collective", enqueued}, {"last_started_collective", int64(-1)}, {"last_completed_collective", completed}}})
	}
	var entries []any
	p := j.program[rank][:j.entered[rank]]
	for i := max(0, len(p)-j.Ring); i < len(p); i++ {
		if !j.Active || !p[i].done {
			entries = append(entries, j.entry(rank, &p[i]))
		}
	}
	return dict{{"version", "2.9"}, {"pg_config", config}, {"nccl_version", "2.27.3"}, {"pg_status", status}, {"entries", entries}}
}

func (j *job) entry(rank int, o *op) dict {
	state, ended := "scheduled", any(nil)
	if o.done {
		state, ended = "completed", o.created+400_000
	}
	sizes := func(of []int64) []any { return []any{[]any{of[0], of[1]}} }
	frames := []any{
		dict{{"name", "all_reduce"}, {"filename", "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"}, {"line", int64(2810)}},
		dict{{"name", "forward"}, {"filename", "/srv/app/model.py"}, {"line", int64(o.line)}},
	}
	pgID := slices.Index(j.mine[rank], o.group)
	return dict{{"frames", frames}, {"record_id", o.record}, {"pg_id", int64(pgID)}, {"process_group", pair{j.groupName(o.group), j.groups[o.group].desc}},
		{"collective_seq_id", o.seq}, {"p2p_seq_id", int64(0)}, {"op_id", o.seq}, {"profiling_name", "nccl:" + o.name}, {"time_created_ns", o.created},
		{"input_sizes", sizes(o.in)}, {"input_dtypes", []any{o.typ}}, {"output_sizes", sizes(o.out)}, {"output_dtypes", []any{o.typ}}, {"state", state},
		{"time_discovered_started_ns", nil}, {"time_discovered_completed_ns", ended}, {"retired", o.done}, {"timeout_ms", int64(600000)}, {"is_p2p", false},
		{"thread_id", "23456244340032"}, {"thread_name", "python3"}}
}
