package serverlog

import (
	"bytes"
	"math"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A field is what a key of a batch line becomes.
type field struct {
	metric series.MetricID
	scale  float64 // of the value; 0 is a truth value
	use    use
}

// use says what else a value is good for.
type use uint8

const (
	asValue     use = iota
	asUsage         // of one of several pools; the fullest one is what the server has left
	ofPrefill       // only prefill servers have it
	ofDecode        // only decode servers have it
	ofNewTokens     // of a prefill line; a decode line repeats it for all that run, every 40 steps
	unused          // known, and of no interest
)

// share turns a part of 1 into a percentage.
const share = 100

// fields are the keys of batch lines, of all releases.
var fields = map[string]field{
	"#new-seq":                        {series.NewSeqs, 1, asValue},
	"#new-token":                      {series.NewTokens, 1, asValue},
	"#cached-token":                   {series.CachedTokens, 1, ofNewTokens},
	"#running-req":                    {series.Running, 1, asValue},
	"#queue-req":                      {series.Queued, 1, asValue},
	"#pending-token":                  {series.PendingTokens, 1, asValue},
	"#token":                          {series.KVTokens, 1, asValue},
	"#full token":                     {series.KVTokens, 1, asValue},
	"token usage":                     {series.KVUsage, share, asUsage},
	"full token usage":                {series.KVUsage, share, asUsage},
	"swa token usage":                 {series.SwaUsage, share, asUsage},
	"mamba usage":                     {series.MambaUsage, share, asUsage},
	"#swa token":                      {use: unused},
	"mamba num":                       {use: unused},
	"#gpu token":                      {series.KVTokens, 1, asValue},
	"#cpu token":                      {use: unused},
	"gen throughput (token/s)":        {series.Generation, 1, asValue},
	"input throughput (token/s)":      {series.PrefillRate, 1, asValue},
	"cache hit rate":                  {series.HitRate, 1, asValue},
	"accept len":                      {series.AcceptLength, 1, asValue},
	"accept rate":                     {series.AcceptRate, share, asValue},
	"cap len":                         {use: unused},
	"block accept len":                {use: unused},
	"cuda graph":                      {series.Graphed, 0, asValue},
	"npu graph":                       {series.Graphed, 0, asValue},
	"cpu graph":                       {series.Graphed, 0, asValue},
	"#bootstrap-req":                  {series.Bootstrapping, 1, ofPrefill},
	"#unbootstrapped-req":             {series.Bootstrapping, 1, ofPrefill},
	"#inflight-req":                   {series.Sending, 1, ofPrefill},
	"#transferring-req":               {series.Sending, 1, ofPrefill},
	"#opt" + "imistic-req":            {use: unused},
	"waiting-image-req":               {use: unused},
	"pre-allocated usage":             {series.PreallocatedUsage, share, ofDecode},
	"#prealloc-req":                   {series.Preallocated, 1, ofDecode}, // of a prefill line, those that bootstrap: see batch
	"#transfer-req":                   {series.Receiving, 1, ofDecode},
	"#retracted-req":                  {series.RetractedQueue, 1, ofDecode},
	"timestamp":                       {use: unused},
	"est. prefill TFLOPS/s (per GPU)": {use: unused},
	"est. decode TFLOPS/s (per GPU)":  {use: unused},
	"est. read BW (GB/s per GPU)":     {use: unused},
	"est. write BW (GB/s per GPU)":    {use: unused},
	"fwd occupancy":                   {use: unused},
}

// pairs yields the pairs of a key and a value in a list divided by commas: "a: 1, #b: 2".
func pairs(b []byte, yield func(key, value []byte)) {
	for len(b) > 0 {
		piece := b
		if i := bytes.Index(b, comma); i >= 0 {
			piece, b = b[:i], b[i+2:]
		} else {
			b = nil
		}
		for {
			i := bytes.Index(piece, colon)
			if i < 0 {
				break
			}
			key, value := bytes.TrimLeft(piece[:i], " "), piece[i+2:]
			// In the first layout of disaggregation a blank divides pairs, too.
			end := bytes.IndexByte(value, ' ')
			if end < 0 {
				yield(key, bytes.TrimRight(value, ","))
				break
			}
			yield(key, value[:end])
			piece = value[end:]
		}
	}
}

var comma, colon = []byte(", "), []byte(": ")

// decimal reads a number without an exponent, "0.12" or "93.10%"; ok is false for anything else.
func decimal(b []byte) (v float64, ok bool) {
	if n := len(b); n > 0 && b[n-1] == '%' {
		b = b[:n-1]
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	whole, point := int64(0), -1
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			whole = 10*whole + int64(c-'0')
		case c == '.' && point < 0 && i > 0:
			point = i
		default:
			return 0, false
		}
	}
	v = float64(whole)
	if point >= 0 {
		v /= powers[len(b)-1-point]
	}
	if neg {
		v = -v
	}
	return v, true
}

var powers = func() (p [19]float64) {
	for i := range p {
		p[i] = math.Pow10(i)
	}
	return p
}()

// A place in the layout of a line has a key, and what it becomes.
type layoutField struct {
	key string
	field
}

// field returns what the nth key of a line becomes. Most lines have the keys of one before: looking
// them up takes longer than all else.
func (r *reader) field(nth int, key []byte) field {
	const most = 32
	if nth < len(r.layout) {
		if l := &r.layout[nth]; string(key) == l.key {
			return l.field
		}
	}
	f, known := fields[string(key)]
	if !known {
		f.use = unused
	}
	switch l := (layoutField{string(key), f}); {
	case nth < len(r.layout):
		r.layout[nth] = l
	case nth == len(r.layout) && nth < most:
		r.layout = append(r.layout, l)
	}
	return f
}

// batch reads what follows "Prefill batch" or "Decode batch".
func (r *reader) batch(b []byte, at trace.Time, place int32, prefill bool) {
	if bytes.HasPrefix(b, []byte(" [")) { // the number of the iteration
		_, b, _ = bytes.Cut(b, []byte("]"))
	}
	b = bytes.TrimLeft(b, "., ")
	usage, n, nth := -1.0, 0, -1
	pairs(b, func(key, value []byte) {
		nth++
		f := r.field(nth, key)
		if f.use == unused {
			return
		}
		v, ok := decimal(value)
		if f.scale == 0 {
			v, ok = 0, bytes.Equal(value, []byte("True")) || bytes.Equal(value, []byte("False"))
			if len(value) == 4 {
				v = 1
			}
		} else {
			v *= f.scale
		}
		if !ok {
			return
		}
		n++
		metric := f.metric
		switch f.use {
		case asUsage:
			usage = max(usage, v)
			if metric == series.KVUsage {
				return // once, of the fullest pool
			}
		case ofNewTokens:
			if !prefill {
				return
			}
		case ofPrefill:
			r.roleIs(place, "prefill")
		case ofDecode:
			if prefill {
				metric = series.Bootstrapping // what it was called until 2026-05
				r.roleIs(place, "prefill")
			} else {
				r.roleIs(place, "decode")
			}
		}
		r.f.Add(r.series(metric, place), at, v)
	})
	if usage >= 0 {
		r.f.Add(r.series(series.KVUsage, place), at, usage)
	}
	if n == 0 {
		r.other++
		return
	}
	r.read++
	r.batches(place, prefill)
}
