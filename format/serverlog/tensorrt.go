package serverlog

import (
	"bytes"
	"math"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// keysOfTensorRT are the keys of TensorRT-LLM's line about an iteration. The step time belongs to the previous iteration.
var keysOfTensorRT = map[string]field{
	"num_scheduled_requests": {series.Running, 1, asValue},
	"num_unscheduled":        {series.Queued, 1, asValue}, // since 2026-07
	"kv_cache_util":          {series.KVUsage, share, asValue},
	"prev_device_step_time":  {series.StepTime, 1e6, asValue},
}

// tensorRT reads a line of TensorRT-LLM: `[05/20/2026-23:24:41] [TRT-LLM] [I] iter = 1, ..`.
func (r *reader) tensorRT(b []byte) bool {
	i := bytes.Index(b[:min(len(b), 200)], []byte("[TRT-LLM]"))
	if i < 0 {
		return false
	}
	at, ok := stampOfTensorRT(b[:i])
	before := b[:max(0, i-len("[05/20/2026-23:24:41] "))]
	w := r.around.Unwrap(before)
	r.process = r.wrapped(before)
	if !ok { // the line of an iteration has its own
		if _, own, found := bytes.Cut(b, []byte(", timestamp = ")); found {
			at, ok = r.stamps.Read(own)
		}
	}
	if !ok {
		return false
	}
	r.engine = "TensorRT-LLM"
	r.f.Within(1e9)
	r.f.Source().Zone.Local = true
	r.f.Saw(at)
	rank := trace.NoRank
	if n, ok := logline.After(b, ", rank = "); ok && n >= 0 && n < 1<<15 {
		rank.Global = int32(n)
	}
	place := r.f.Place(series.Place{Server: r.server(w), Rank: rank, GPU: series.NoGPU})
	body := b[i:]
	k := bytes.Index(body, []byte("iter = "))
	if k < 0 {
		_, said, failed := bytes.Cut(body, []byte("[E] "))
		switch {
		case r.event(body, at, place), failed && r.traced(said, r.process):
			r.read++
		case failed && errortext.IsTraceback(said):
			r.read++
			r.raise(series.Instant{Time: at, Kind: series.Traceback, Place: place, Line: uint32(r.line), Count: 1}, "", r.process)
		case failed && r.complain(said, at, place, ""):
			r.read++
		default:
			r.unknown(body)
		}
		return true
	}
	r.read++
	r.batches(place)
	r.iteration(body[k:], at, place)
	return true
}

// stampOfTensorRT parses the stamp before a line, whose end is "[05/20/2026-23:24:41] ".
func stampOfTensorRT(b []byte) (trace.Time, bool) {
	const length = len("05/20/2026-23:24:41] ")
	if len(b) < length {
		return 0, false
	}
	s := b[len(b)-length:]
	month, ok1 := logline.Digits(s, 2)
	day, ok2 := logline.Digits(s[3:], 2)
	year, ok3 := logline.Digits(s[6:], 4)
	clock, ok4 := logline.ClockOf(s[11:])
	at, ok := logline.At(year, month, day, clock)
	return at, ok && ok1 && ok2 && ok3 && ok4
}

// statesOfTensorRT are the keys of the dictionary in that line.
var statesOfTensorRT = [...]struct {
	key    string
	metric series.MetricID
}{{"'num_ctx_tokens': ", series.NewTokens}, {"'cached_kv_tokens': ", series.CachedTokens}}

// iteration reads the line about an iteration.
func (r *reader) iteration(b []byte, at trace.Time, place int32) {
	if i := bytes.Index(b, []byte("states = ")); i >= 0 {
		states, rest, _ := bytes.Cut(b[i:], []byte("}"))
		for _, x := range statesOfTensorRT {
			if v, ok := logline.After(states, x.key); ok {
				r.f.Add(r.series(x.metric, place), at, v)
			}
		}
		r.iterationValues(rest, at, place)
		b = b[:i]
	}
	r.iterationValues(b, at, place)
}

// tritonIteration reads the JSON line about an iteration from Triton's backend of TensorRT-LLM, with --log-verbose=1.
// Active requests include running ones and those that wait for room; until 2024, their sum has no key of its own.
func (r *reader) tritonIteration(b []byte, at trace.Time, place int32) bool {
	if !bytes.HasPrefix(b, []byte(`{"Active Request Count":`)) {
		return false
	}
	of := func(key string) float64 {
		if v, ok := logline.After(b, `"`+key+`":`); ok {
			return v
		}
		return math.NaN()
	}
	running := of("Scheduled Requests")
	if math.IsNaN(running) {
		running = of("Context Requests per Iteration") + of("Generation Requests per Iteration")
	}
	r.engine = "TensorRT-LLM"
	r.read++
	r.batches(place)
	for metric, v := range map[series.MetricID]float64{series.Running: running, series.Queued: of("Active Request Count") - running, series.KVUsage: 100 * of("Used KV cache blocks") / of("Max KV cache blocks"), series.NewTokens: of("Total Context Tokens")} {
		if v >= 0 && v < 1e12 {
			r.f.Add(r.series(metric, place), at, v)
		}
	}
	return true
}

// iterationValues parses pairs "a = 1, b: 2" of that line.
func (r *reader) iterationValues(b []byte, at trace.Time, place int32) {
	for len(b) > 0 {
		var piece []byte
		piece, b, _ = bytes.Cut(b, comma)
		key, value, ok := bytes.Cut(piece, []byte(" = "))
		if !ok {
			key, value, ok = bytes.Cut(piece, colon)
		}
		f, known := keysOfTensorRT[string(key)]
		if !ok || !known {
			continue
		}
		if v, ok := logline.Decimal(bytes.TrimSuffix(bytes.TrimRight(value, ", "), []byte("ms")), f.scale); ok {
			r.f.Add(r.series(f.metric, place), at, v)
		}
	}
}
