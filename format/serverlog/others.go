package serverlog

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/format/serverlog/requestlog"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// without reads a line without a stamp in brackets, or with the stamp of another engine.
func (r *reader) without(b []byte, w logline.Wrapping) {
	rest := r.around.Rest(b)
	switch {
	case isAccess(rest): // vLLM's: it has the time of the line before
		if r.now != 0 {
			r.access(rest, r.now, r.spot())
		}
	case logline.IsKernelLine(b):
		r.ofKernel(b)
	case r.clocked(rest, b[:len(b)-len(rest)]), r.vllm(b), r.tensorRT(b), r.logfmt(rest), r.tabs(b), r.tabs(rest), r.dynamo(b), r.ownFormat(b):
	case requestlog.IsRecord(b):
		r.requests.JSON(b, r.requestLine(0, r.placeOf(nil, w)))
	case bytes.HasPrefix(rest, warnsTensorRT) && r.event(rest, r.now, r.placeOf(nil, w)):
		r.read++
	case bytes.HasPrefix(rest, ofTensorRT) && (r.event(rest, r.now, r.placeOf(nil, w)) || r.complain(bytes.TrimLeft(rest[len(ofTensorRT):], " "), r.now, r.placeOf(nil, w), "C++")):
		r.read++
	case r.stampless(rest):
	case r.ucx(b), r.glog(b, rest), r.unstamped(rest, b[:len(b)-len(rest)]), r.ofDevice(rest), r.ofCANN(rest), r.ofTool(rest):
		r.read++
	case bytes.HasPrefix(rest, decodeBatch), bytes.HasPrefix(rest, prefillBatch):
		r.untimed++
	case r.lastError(rest):
		r.read++
	default:
		r.unknown(b)
	}
}

// ofKernel reads a line of the kernel in the journal of a host.
func (r *reader) ofKernel(b []byte) {
	before := r.kernel.Year
	x, ok := r.kernel.Read(b, int(r.line))
	if r.kernel.Year != before && before == 0 {
		r.f.Set.Diags.Add(trace.LogNoYear.Of(r.in.Name, r.kernel.Year))
	}
	if !ok || x.More {
		return
	}
	r.read++
	if zone := &r.f.Source().Zone; x.Local && !zone.Local && x.At != 0 {
		x.At -= trace.Time(zone.East)
	}
	kind := series.Hardware
	if x.Killed {
		kind = series.Crash
	}
	place := r.f.Place(series.Place{Server: r.f.Server(series.Server{Host: x.Host}), Rank: trace.NoRank, GPU: series.NoGPU})
	r.f.Instant(series.Instant{Time: x.At, Kind: kind, Place: place, Line: uint32(r.line), Count: 1}, x.Text)
}

// lastError reads NCCL's text after "Last error:", the reason for the previous exception.
func (r *reader) lastError(b []byte) bool {
	if bytes.Equal(bytes.TrimSpace(b), []byte("Last error:")) {
		r.asks = true
		return true
	}
	if !r.asks {
		return false
	}
	r.asks = false
	why, _, _ := bytes.Cut(b, []byte("', please check"))
	return len(bytes.TrimSpace(b)) > 0 && r.f.Explain("NCCL error", logline.Message(why))
}

// ofTensorRT is the prefix of errors of TensorRT-LLM's C++ code, and warnsTensorRT that of its warnings.
var ofTensorRT, warnsTensorRT = []byte("[TensorRT-LLM][ERROR]"), []byte("[TensorRT-LLM][WARNING]")

// stampless reads a line whose stamp was cut off, "[TP0] Decode batch.. ", or that never had one, "[gpu=0] Decode batch.. " until 2024-09. The times of its events are unknown; batches are
// counted.
func (r *reader) stampless(b []byte) bool {
	const most = 64
	end := bytes.IndexByte(b[:min(len(b), most)], ']')
	if end < 2 || b[0] != '[' {
		return false
	}
	header := append([]byte(" "), bytes.TrimSpace(b[1:end])...)
	if rankOf(header) == trace.NoRank && !bytes.HasPrefix(b, []byte("[gpu=")) && !bytes.HasPrefix(b, []byte("[gpu_id=")) {
		return false
	}
	r.here = r.placeOf(header, logline.Wrapping{})
	switch b = bytes.TrimLeft(b[end+1:], " "); {
	case bytes.HasPrefix(b, decodeBatch), bytes.HasPrefix(b, prefillBatch):
		r.untimed++
	case r.event(b, r.now, r.here):
		r.read++
	case errortext.IsTraceback(b):
		r.read++
		r.raise(series.Instant{Time: r.now, Kind: series.Traceback, Place: r.here, Line: uint32(r.line), Count: 1}, "", r.process)
	default:
		r.unknown(b)
	}
	return true
}

// glog reads an event of PyTorch's C++ code: "[rank2]:[E1227 01:06:16.020753201 ProcessGroupNCCL.cpp:683] ..", with month
// and day but no year, or of Mooncake's, which has a thread ID and no bracket. The year is that of the line before it, or
// of the first one that has one.
func (r *reader) glog(b, bare []byte) bool {
	g, rest, ok := logline.GlogOf(b)
	if !ok {
		g, rest, ok = logline.PlainGlogOf(bare)
	}
	before := b[:len(b)-len(rest)]
	if !ok {
		i := behindPod(b)
		g, rest, ok = logline.PlainGlogOf(b[i:])
		before = b[:i]
	}
	if !ok {
		return false
	}
	outer, _ := outside(before)
	w := r.around.Unwrap(outer)
	at := cmp.Or(w.At, r.now) // until 2.1, such lines had no stamp
	switch {
	case g.Month != 0 && w.At != 0:
		at = r.place(g.Time(r.yearOf(time.Month(g.Month), g.Day)), w, g.Grain)
	case g.Month != 0:
		at = g.Time(r.yearOf(time.Month(g.Month), g.Day))
		if !r.f.Source().Zone.Local {
			at -= trace.Time(r.f.Source().Zone.East)
		}
		r.f.Within(g.Grain)
	}
	if at != r.now {
		r.f.Saw(at)
		r.now = at
	}
	if len(rest) > 0 && rest[0] == '"' {
		rest = structured(rest)
	}
	rank := trace.NoRank
	rank.Global = max(rank.Global, g.Rank)
	said := r.printed.Watchdog(rest, g.Rank, at)
	place := r.f.Place(series.Place{Server: r.server(w), Rank: rank, GPU: series.NoGPU})
	if errortext.IsTraceback(bytes.TrimPrefix(rest, []byte(`"`))) { // quoted by Triton
		r.raise(series.Instant{Time: at, Kind: series.Traceback, Place: place, Line: uint32(r.line), Count: 1}, "", r.process)
		return true
	}
	return r.tritonIteration(rest, at, place) || r.event(rest, at, place) || said || (g.Level == 'E' || g.Level == 'F') && r.complain(rest, at, place, "C++")
}

// behindPod returns the length of the pod and container names that stern puts before a line.
func behindPod(b []byte) (n int) {
	const longest = 200
	for range 2 {
		i := bytes.IndexByte(b[n:min(len(b), longest)], ' ')
		if i <= 0 {
			return 0
		}
		n += i + 1
	}
	return n
}

// ucx reads an error of UCX, "[1787000000.684686] [node1:994396:0]  ib_mlx5_dv.c:452  UCX  ERROR failed on mlx5_1": its
// stamp is Unix time.
func (r *reader) ucx(b []byte) bool {
	head, said, ok := bytes.Cut(b, []byte(" UCX  ERROR "))
	if !ok || b[0] != '[' {
		return false
	}
	stamp, _, _ := bytes.Cut(head[1:], []byte("]"))
	if n := jsonscan.UnixNano(string(stamp)); n != 0 {
		r.f.Within(1000)
		r.now = trace.Time(n)
		r.f.Saw(r.now)
	}
	return r.complain(bytes.TrimLeft(said, " "), r.now, r.unranked(), "UCX")
}

// dynamo reads a line in the format of Dynamo's workers: `2026-04-27T23:03:15.250907Z  INFO
// metrics_reporter.report_decode_stats: Decode batch, ..`. It does not name the rank.
func (r *reader) dynamo(b []byte) bool {
	i := logline.IndexLeveledStamp(b)
	if i < 0 {
		return false
	}
	outer, _ := outside(b[:i])
	w := r.around.Unwrap(outer)
	at, n, ok := r.around.Outer.Zoned(b[i:])
	if !ok {
		return false
	}
	r.process = r.wrapped(b[:i])
	said := bytes.TrimLeft(b[i+n:], " ")
	rest := unleveled(said)
	zone := &r.f.Source().Zone
	if zone.By == "" && !zone.Local {
		zone.By = "stamps with a zone"
	}
	r.f.Within(1000)
	r.leveled(bytes.TrimLeft(rest, " "), logline.LevelOf(said), at, r.placeOf(nil, w))
	return true
}

// statsOfVLLM are the keys of vLLM's line of statistics.
var statsOfVLLM = map[string]field{
	"Avg prompt throughput":     {series.PrefillRate, 1, asValue},
	"Avg generation throughput": {series.Generation, 1, asValue},
	"Running":                   {series.Running, 1, asValue},
	"Waiting":                   {series.Queued, 1, asValue},
	"Pending":                   {series.Queued, 1, asValue},
	"GPU KV cache usage":        {series.KVUsage, 1, asValue},
	"Prefix cache hit rate":     {series.HitRate, 1, asValue},
	"Preemptions":               {series.Preemptions, 1, asValue},
	"Mean acceptance length":    {series.AcceptLength, 1, asValue},
	"Avg Draft acceptance rate": {series.AcceptRate, 1, asValue},
}

// vllm reads a line of vLLM: `(APIServer pid=1) INFO 06-18 09:55:08 [loggers.py:271] Engine 000: ..`.
func (r *reader) vllm(b []byte) bool {
	level, w, process := r.levelOfVLLM(b)
	if level == 0 {
		return false
	}
	at, ok := r.yearless(b[level:])
	if !ok {
		return false
	}
	r.engine = "vLLM"
	r.f.Within(1e9)
	r.f.Source().Zone.Local = true
	if w.At != 0 {
		r.f.Source().Zone.Beside(at, w.At)
	}
	r.f.Saw(at)
	body, source := b[level+len("01-02 15:04:05 "):], ""
	if i := bytes.Index(body, []byte("] ")); i > 0 && i < 60 {
		body, source = body[i+2:], string(body[:i])
	}
	rank := rankOfWorker(process)
	if bytes.HasPrefix(body, []byte("Engine ")) {
		if n, ok := logline.Digits(body[7:], 3); ok {
			rank.DP = int16(n)
			body = bytes.TrimLeft(body[10:], ": ")
		}
	}
	of := series.Place{Server: r.server(w), Rank: rank, GPU: series.NoGPU}
	switch {
	case bytes.HasPrefix(body, []byte("Avg prompt throughput")):
		r.told, r.toldAt = of, at
	case isOfEngine(body) && rank == trace.NoRank && r.told.Server == of.Server && at-r.toldAt <= 1e9:
		of = r.told // an engine only names itself in the first of its lines
	}
	place := r.f.Place(of)
	of.Rank = rankOfWorker(process) // lines after statistics need not be from that engine
	r.now, r.here, r.process = at, r.f.Place(of), process
	if errortext.IsErrorLevel(b[max(0, level-len("CRITICAL ")):level]) {
		r.within(body, process, series.Instant{Time: at, Place: place})
	}
	r.begun(process)
	switch {
	case r.statistics(body, at, place):
	case r.lastError(body), r.event(body, at, place), r.traced(body, process):
		r.read++
	case errortext.IsTraceback(body):
		r.read++
		kind := kindOf(process)
		if r.survives.process == process && r.survives.at == at {
			kind = series.Traceback
		}
		r.raise(series.Instant{Time: at, Kind: kind, Place: place, Line: uint32(r.line), Count: 1}, engineWords[logline.Word([]byte(process))], process)
		r.raised[len(r.raised)-1].because = errortext.InMethod(body)
	case errortext.IsErrorLevel(b[max(0, level-len("CRITICAL ")):level]) && (r.lastOf(body, at, place) || r.complain(body, at, place, source)):
		r.read++
	default:
		r.unknownOf(bytes.TrimLeft(b[max(0, level-len("WARNING ")):level], " "), body, at, place, source)
	}
	return true
}

// levelOfVLLM returns the end of the level in a line of vLLM, 0 if there is none, the wrapping of the line, and the process
// that it names.
func (r *reader) levelOfVLLM(b []byte) (end int, w logline.Wrapping, process string) {
	const looked = 300
	for _, l := range [...]string{"INFO ", "WARNING ", "ERROR ", "CRITICAL ", "DEBUG "} {
		i := bytes.Index(b[:min(len(b), looked)], []byte(l))
		if i >= 0 && isMonthDay(b[i+len(l):]) {
			_, before := logline.Process(b[:i])
			return i + len(l), r.around.Unwrap(before), r.wrapped(b[:i])
		}
	}
	return 0, w, ""
}

// rankOfWorker parses the rank in the name of a vLLM worker, "Worker_DP0_TP5_EP5 pid=12", before 2025-09 "VllmWorker TP0
// pid=12", or of an engine, "EngineCore_DP1 pid=12". A single engine was also called DP0.
func rankOfWorker(process string) trace.Rank {
	if !strings.HasPrefix(process, "Worker_") && !strings.HasPrefix(process, "VllmWorker ") && (!strings.HasPrefix(process, "EngineCore_DP") || strings.HasPrefix(process, "EngineCore_DP0 ")) {
		return trace.NoRank
	}
	return rankOf([]byte(strings.ReplaceAll(process, "_", " ")))
}

// isOfEngine reports whether a line of statistics follows the one about the batches of the same engine.
func isOfEngine(body []byte) bool {
	return bytes.HasPrefix(body, specMetrics) || bytes.HasPrefix(body, specCounts) || bytes.HasPrefix(body, transferMetrics)
}

// specCounts is of V0.
var specMetrics, specCounts, transferMetrics = []byte("SpecDecoding metrics: "), []byte("Speculative metrics: "), []byte("KV Transfer metrics: ")

// engineWords describe vLLM's processes in which an exception ends the server, by name.
var engineWords = map[string]string{"EngineCore": "the engine", "EngineCore_DP": "the engine", "EngineCore_": "the engine", "VllmWorker": "a worker", "RayWorkerWrapper": "a worker", "Worker": "a worker", "Worker_TP": "a worker", "Worker_PP": "a worker", "Worker_DP": "a worker", "VllmWorkerProcess": "a worker"}

// kindOf returns the kind of an exception in a vLLM process: in an engine or a worker, it is its end.
func kindOf(process string) series.InstantKind {
	if engineWords[logline.Word([]byte(process))] != "" || strings.HasSuffix(process, "]") { // a rank with an uncaught exception
		return series.Exception
	}
	return series.Traceback
}

// statistics reads a line of vLLM's statistics: about batches, drafts, or transfers. It reports whether b is one.
func (r *reader) statistics(b []byte, at trace.Time, place int32) bool {
	switch {
	case bytes.HasPrefix(b, []byte("Avg prompt throughput")):
		r.stats(b, at, place)
	case bytes.HasPrefix(b, specMetrics):
		r.stats(b[len(specMetrics):], at, place)
	case bytes.HasPrefix(b, specCounts):
		r.drafts(b[len(specCounts):], at, place)
	case bytes.HasPrefix(b, transferMetrics):
		r.read++
		for _, key := range [...]string{"Num failed transfers=", "Num failed recvs="} {
			if n, ok := logline.After(b, key); ok && n >= 1 {
				r.f.Instant(series.Instant{Time: at, Kind: series.TransferFailed, Place: place, Line: uint32(r.line), Count: int32(min(n, 1e6))}, "transfers of KV caches failed, as its metrics say")
			}
		}
	default:
		return false
	}
	return true
}

// stats reads a line of statistics.
func (r *reader) stats(b []byte, at trace.Time, place int32) {
	r.read++
	r.batches(place)
	for len(b) > 0 {
		var key, value []byte
		key, value, b = nextPair(b)
		if f, known := statsOfVLLM[string(key)]; known {
			if v, ok := logline.Decimal(bytes.TrimRight(value, "."), f.scale); ok {
				r.f.Add(r.series(f.metric, place), at, v)
				if f.metric == series.Preemptions && v >= 1 {
					r.f.Instant(series.Instant{Time: at, Kind: series.Retraction, Place: place, Line: uint32(r.line), Count: int32(min(v, 1e6))}, "the KV cache is full: preempts requests")
				}
			}
		}
	}
}

// A drafted is what an engine of vLLM V0 has counted since its start: tokens that it drafted, accepted, and emitted, with those that
// each step gives anyway.
type drafted struct{ drafts, accepted, emitted float64 }

// drafts reads these counts, and adds what they say about the time since the previous line.
func (r *reader) drafts(b []byte, at trace.Time, place int32) {
	r.read++
	length, ok := logline.After(b, "Number of speculative tokens: ")
	now := drafted{}
	for key, to := range map[string]*float64{"Number of draft ": &now.drafts, "Number of accepted ": &now.accepted, "Number of emitted ": &now.emitted} {
		n, has := logline.After(logline.Behind(b, key), "tokens: ") // once, or twice in some releases
		*to, ok = n, ok && has
	}
	before := r.drafted[place]
	if !ok || length < 1 || now.drafts < before.drafts {
		return
	}
	if n := now.drafts - before.drafts; n > 0 {
		r.f.Add(r.series(series.AcceptLength, place), at, (now.emitted-before.emitted)*length/n)
		r.f.Add(r.series(series.AcceptRate, place), at, (now.accepted-before.accepted)/n*share)
	}
	r.drafted[place] = now
}

// isMonthDay reports whether b begins with "06-18 09:55:08 ".
func isMonthDay(b []byte) bool {
	return len(b) > 15 && b[2] == '-' && b[5] == ' ' && b[8] == ':' && b[11] == ':' && b[14] == ' '
}

// yearless parses a stamp without a year.
func (r *reader) yearless(b []byte) (trace.Time, bool) {
	month, ok1 := logline.Digits(b, 2)
	day, ok2 := logline.Digits(b[3:], 2)
	clock, ok3 := logline.ClockOf(b[6:])
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	return logline.At(r.yearOf(time.Month(month), day), month, day, clock)
}

// yearOf returns the year for a stamp without one: that of the line before it, or of the first stamp with one; else the
// last possible one before the file was written.
func (r *reader) yearOf(month time.Month, day int) int {
	if year := cmp.Or(r.stamps.Year(), r.headYear); year != 0 {
		return year
	}
	if r.year == 0 {
		r.year = logline.LastYear(r.in.Path, month, day)
		r.f.Set.Diags.Add(trace.LogNoYear.Of(r.in.Name, r.year))
	}
	return r.year
}
