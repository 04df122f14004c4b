package serverlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A field is the meaning of a key of a batch line.
type field struct {
	metric series.MetricID
	scale  float64 // factor for the value; 0 means a boolean
	use    use
}

// use is the additional use of a value.
type use uint8

const (
	asValue     use = iota
	asUsage         // usage of one of several pools; the fullest one limits the server
	ofPrefill       // only on prefill servers
	ofDecode        // only on decode servers
	ofNewTokens     // on a prefill line; a decode line repeats it for all running requests, every 40 steps
	unused          // known, but not needed
)

// share converts a fraction to a percentage.
const share = 100

// fields are the keys of batch lines in all releases.
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
	"musa graph":                      {series.Graphed, 0, asValue},
	"#bootstrap-req":                  {series.Bootstrapping, 1, ofPrefill},
	"#unbootstrapped-req":             {series.Bootstrapping, 1, ofPrefill},
	"#inflight-req":                   {series.Sending, 1, ofPrefill},
	"#transferring-req":               {series.Sending, 1, ofPrefill},
	"#opt" + "imistic-req":            {use: unused},
	"waiting-image-req":               {use: unused},
	"pre-allocated usage":             {series.PreallocatedUsage, share, ofDecode},
	"#prealloc-req":                   {series.Preallocated, 1, ofDecode}, // on a prefill line, the bootstrapping requests: see batch
	"#transfer-req":                   {series.Receiving, 1, ofDecode},
	"#retracted-req":                  {series.RetractedQueue, 1, ofDecode},
	"timestamp":                       {use: unused},
	"est. prefill TFLOPS/s (per GPU)": {use: unused},
	"est. decode TFLOPS/s (per GPU)":  {use: unused},
	"est. read BW (GB/s per GPU)":     {use: unused},
	"est. write BW (GB/s per GPU)":    {use: unused},
	"fwd occupancy":                   {use: unused},
}

// nextPair returns the first pair of a comma-separated list, "a: 1, #b: 2", and the rest; key is empty if there is none. In
// the first layout of disaggregation, a blank separates pairs, too.
func nextPair(b []byte) (key, value, rest []byte) {
	i := bytes.Index(b, colon)
	if i < 0 {
		return nil, nil, nil
	}
	key, value = b[:i], b[i+2:]
	if k := bytes.LastIndex(key, comma); k >= 0 { // of a list in the previous value
		key = key[k+2:]
	}
	end := bytes.IndexByte(value, ' ')
	if end < 0 {
		end = len(value)
	}
	return bytes.TrimLeft(key, " "), bytes.TrimRight(value[:end], ","), bytes.TrimLeft(value[end:], " ")
}

var comma, colon = []byte(", "), []byte(": ")

// A layoutField is a key at its place in a line, and its meaning.
type layoutField struct {
	label string // the key, with its colon and blank
	field
}

// fieldOf returns the meaning of the nth key of a line, and stores it in the layout.
func fieldOf(layout *[]layoutField, nth int, key []byte) field {
	const most = 32
	if nth < len(*layout) {
		if l := &(*layout)[nth]; l.label[:len(l.label)-len(colon)] == string(key) {
			return l.field
		}
	}
	f, known := fields[string(key)]
	if !known {
		f.use = unused
	}
	switch l := (layoutField{string(key) + ": ", f}); {
	case nth < len(*layout):
		(*layout)[nth] = l
	case nth == len(*layout) && nth < most:
		*layout = append(*layout, l)
	}
	return f
}

// leading parses the value at the beginning of b, a number or a boolean; n is its length, 0 if it is anything else.
func (f *field) leading(b []byte) (v float64, n int) {
	switch {
	case f.scale != 0 || f.use == unused:
		return logline.LeadingDecimal(b, f.scale)
	case bytes.HasPrefix(b, []byte("True")):
		return 1, len("True")
	case bytes.HasPrefix(b, []byte("False")):
		return 0, len("False")
	}
	return 0, 0
}

// A batchLine is the current batch line.
type batchLine struct {
	at      trace.Time
	place   int32
	prefill bool
	usage   float64 // of the fullest pool; -1 is unknown
	n       int     // number of values
}

// batch reads what follows "Prefill batch" or "Decode batch". Most lines have the same keys as the previous one of their
// kind, which saves the lookups.
func (r *reader) batch(b []byte, at trace.Time, place int32, prefill bool) {
	if bytes.HasPrefix(b, []byte(" [")) { // number of the iteration
		_, b, _ = bytes.Cut(b, []byte("]"))
	}
	r.engine = "SGLang"
	r.asked = asked{place: place, since: at}
	b = bytes.TrimLeft(b, "., ")
	line := batchLine{at: at, place: place, prefill: prefill, usage: -1}
	layout := &r.layouts[0]
	if prefill {
		layout = &r.layouts[1]
	}
	for nth := 0; len(b) > 0; nth++ {
		if nth < len(*layout) {
			l := &(*layout)[nth]
			if k := len(l.label); len(b) > k && string(b[:k]) == l.label {
				v, n := l.leading(b[k:])
				if rest := b[k+n:]; n > 0 && (len(rest) == 0 || bytes.HasPrefix(rest, comma)) {
					r.batchValue(&line, l.field, v)
					b = rest[min(len(rest), len(comma)):]
					continue
				}
			}
		}
		var key, value []byte
		if key, value, b = nextPair(b); len(key) == 0 {
			break
		}
		f := fieldOf(layout, nth, key)
		if v, n := f.leading(value); n > 0 && (n == len(value) || string(value[n:]) == "%") {
			r.batchValue(&line, f, v)
		}
	}
	if line.usage >= 0 {
		r.f.Add(r.series(series.KVUsage, place), at, line.usage)
	}
	if line.n == 0 {
		r.strange()
		return
	}
	r.read++
	r.batches(place)
}

// batchValue adds a value of a batch line.
func (r *reader) batchValue(x *batchLine, f field, v float64) {
	metric := f.metric
	switch f.use {
	case unused:
		return
	case asUsage:
		x.usage = max(x.usage, v)
		if metric == series.KVUsage {
			x.n++
			return // once, for the fullest pool
		}
	case ofNewTokens:
		if !x.prefill {
			x.n++
			return
		}
	case ofPrefill:
		r.roleIs(x.place, "prefill")
	case ofDecode:
		if x.prefill {
			metric = series.Bootstrapping // its name until 2026-05
			r.roleIs(x.place, "prefill")
		} else {
			r.roleIs(x.place, "decode")
		}
	}
	x.n++
	r.f.Add(r.series(metric, x.place), x.at, v)
}
