package serverlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// lookedAt is the part of a line that is searched for the words of events: the rest may be a prompt.
const lookedAt = 400

// ofRaylet is the prefix of lines of Ray's daemon, which have no stamp.
var ofRaylet = []byte("(raylet")

// ofSlurm is the prefix of lines of Slurm's daemon on a node, which have no stamp either.
var ofSlurm = []byte("slurmstepd: error: ")

// isServing is the beginning of the line in which uvicorn reports that a server is ready.
var isServing = []byte("INFO:     Application startup complete")

// ofUvicorn is the prefix of uvicorn's errors.
var ofUvicorn = []byte("ERROR:    ")

// deadBecause is the beginning of the line in which Ray gives the reason for an actor's death.
var deadBecause = []byte("The actor is dead because ")

// event reads a line that may be an event, and reports whether it is.
func (r *reader) event(b []byte, at trace.Time, place int32) bool {
	found := eventWords.First(b[:min(len(b), lookedAt)])
	if found < 0 {
		return false
	}
	s := &signs[found]
	x := series.Instant{Time: at, Kind: s.kind, Place: place, Line: uint32(r.line), Count: 1}
	text := s.says
	switch {
	case s.reads != nil:
		text = s.reads(b)
	case s.sets != nil:
		text = s.sets(b, &x)
	case s.more != nil:
		text = s.more(r, b, &x)
	}
	if text != "" {
		r.stopping = r.stopping && x.Kind != series.Starting && x.Kind != series.Ready // it starts again
		r.lost = r.lost || x.Kind == series.TransferFailed || x.Kind == series.PeerLost
		r.f.Instant(x, text)
	}
	return true
}

// balancedness reads how evenly the experts of GPUs got tokens: in one pass, or in several that one line summarizes.
func (r *reader) balancedness(b []byte, x *series.Instant) string {
	v, ok := logline.After(b, " current_pass_balancedness=")
	if !ok {
		v, ok = logline.After(b, " average_balancedness=")
	}
	if !ok {
		return ""
	}
	r.f.Add(r.series(series.Balancedness, x.Place), x.Time, v*share)
	if n, ok := logline.After(b, " gpu_physical_count_sum="); ok {
		r.f.Add(r.series(series.ExpertTokens, x.Place), x.Time, n)
	}
	return ""
}

// A dpRank is a scheduler, which has a process per TP rank.
type dpRank struct {
	server int32
	dp     int16
}

// A retracted is a rank's last message about retracted requests.
type retracted struct {
	place int32
	at    trace.Time
	text  string
}

// retraction reads the number of retracted requests. All TP ranks of a scheduler report it: the same number from another
// one is not counted again.
func (r *reader) retraction(b []byte, x *series.Instant) string {
	p := &r.f.Set.Places[x.Place]
	key := dpRank{p.Server, p.Rank.DP}
	said := r.retracted[key]
	if said.place != x.Place && string(b) == said.text && x.Time-said.at <= trace.Time(2e9) {
		return ""
	}
	r.retracted[key] = retracted{x.Place, x.Time, string(b)}
	if n, ok := logline.After(b, "#retracted_reqs: "); ok {
		x.Count = int32(max(1, min(n, 1e6)))
	}
	if n, ok := logline.After(b, "#aborted_retracted_reqs: "); ok && n > 0 {
		return "the KV cache is full: retracts requests, and aborts some of them"
	}
	return "the KV cache is full: retracts requests"
}

func (r *reader) collective(b []byte, _ *series.Instant) string {
	r.timedOut = true
	return errortext.Collective(b)
}

// failedCollective reads in which collective PyTorch's watchdog found a failure: a timeout was already reported in other
// words.
func (r *reader) failedCollective(b []byte, _ *series.Instant) string {
	if r.timedOut {
		return ""
	}
	return logline.SaysFailed(b)
}

// endedBySlurm reads why Slurm ends a job, after "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2026-01-07T10:29:37
// DUE TO TIME LIMIT ***". Its stamp is in the zone of its node, which may differ from the log's: the time is that of the
// line before it.
func (r *reader) endedBySlurm(b []byte, x *series.Instant) string {
	const lastWords = ", after its last line"
	if !bytes.HasPrefix(b, ofSlurm) {
		return ""
	}
	r.stopping = true
	switch why, _, _ := bytes.Cut(logline.Behind(b, " DUE TO "), []byte(" ***")); {
	case bytes.HasPrefix(why, []byte("TIME LIMIT")):
		return "Slurm ended its job at the time limit" + lastWords
	case bytes.HasPrefix(why, []byte("PREEMPTION")):
		return "Slurm ended its job for one of higher priority (preemption)" + lastWords
	case bytes.HasPrefix(why, []byte("NODE FAILURE")):
		x.Kind = series.Crash
		return "Slurm ended its job, as a node failed" + lastWords
	}
	return "its Slurm job was canceled" + lastWords
}

// eventLoop reads the traceback that ends TensorRT-LLM's event loop, while the server goes on answering.
func (r *reader) eventLoop(b []byte, x *series.Instant) string {
	r.raise(*x, "the event loop", r.process)
	return ""
}

// failedTask reads the traceback of a task of LMDeploy, "Task <EngineMainLoop> failed": without its loops, an engine does
// nothing any more.
func (r *reader) failedTask(b []byte, x *series.Instant) string {
	name, _, ok := bytes.Cut(logline.Behind(b, "Task <"), []byte("> failed"))
	if !ok || len(name) > 60 {
		return ""
	}
	if x.Kind = series.Traceback; bytes.Contains(name, []byte("Loop")) {
		x.Kind = series.Exception
	}
	r.raise(*x, "task "+string(name), r.process)
	return ""
}

func (r *reader) preempted(b []byte, x *series.Instant) string {
	if n, ok := logline.After(b, "total_num_cumulative_preemption="); ok {
		x.Count = int32(max(1, min(n-r.preemptions, 1e6)))
		r.preemptions = n
	}
	return "the KV cache is full: preempts requests"
}

// shutdown reads the first of the lines about the shutdown of a server.
func (r *reader) shutdown(_ []byte, x *series.Instant) string {
	if r.stopping {
		return ""
	}
	r.stopping = true
	return "was told to shut down"
}

// deadEngine reads that vLLM's engine is dead. After a shutdown, that is normal.
func (r *reader) deadEngine(_ []byte, x *series.Instant) string {
	if i := slices.IndexFunc(r.raised, func(e *raised) bool { return e.from == r.process && e.x.Kind == series.Traceback }); i >= 0 {
		r.raised = slices.Delete(r.raised, i, i+1) // its normal end
	}
	if r.stopping {
		return ""
	}
	x.Kind = series.Crash
	return "its engine is dead; see what happened before"
}

// discovered reads how many servers Dynamo's discovery found, "list returning 0 instances for query=AllEndpoints".
func (r *reader) discovered(b []byte, x *series.Instant) string {
	n, ok := logline.After(b, "list returning ")
	switch {
	case !ok:
	case n > 0:
		r.unserved = series.Instant{}
	case r.unserved.Count == 0:
		r.unserved = *x
	default:
		r.unserved.Count++
	}
	return ""
}

// arguments reads the configuration of a server: sizes and modes, and nothing that may be secret.
func (r *reader) arguments(b []byte, x *series.Instant) string {
	x.Kind = series.Starting
	var parts []string
	for _, key := range [...]string{"tp_size", "dp_size", "pp_size", "ep_size", "chunked_prefill_size", "max_running_requests", "mem_fraction_static", "decode_log_interval"} {
		if v := argument(b, key); v != "" && v != "None" {
			parts = append(parts, key+" "+v)
		}
	}
	if n, ok := logline.After([]byte(argument(b, "ep_size")), ""); ok && n > 0 && n < 1<<14 {
		r.f.Set.Servers[r.f.Set.Places[x.Place].Server].EP = int32(n)
	}
	switch host, port := argument(b, "host"), argument(b, "port"); {
	case port == "", host == "", host == "0.0.0.0", host == "localhost", strings.HasPrefix(host, "127."): // not a unique address
	default:
		r.f.Listens(r.f.Set.Places[x.Place].Server, host+":"+port)
	}
	switch mode := argument(b, "disaggregation_mode"); mode {
	case "prefill", "decode":
		r.roleIs(x.Place, mode)
	}
	return "starts: " + strings.Join(parts, ", ")
}

// argument returns the value of a setting that is a number or a word.
func argument(b []byte, key string) string {
	i := bytes.Index(b, []byte(key+"="))
	if i < 0 || i > 0 && b[i-1] != ' ' && b[i-1] != '(' && b[i-1] != ',' {
		return ""
	}
	return logline.Beginning(bytes.Trim(b[i+len(key)+1:min(len(b), i+len(key)+40)], "'\""), ".-_", 32)
}
