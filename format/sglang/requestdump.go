package sglang

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// RequestDump reads SGLang's dumps of requests: crash dumps (--crash-dump-folder: crash_dump_*.pkl), with
// all requests in flight and those of the last minutes, and request dumps (/configure_logging), with those that ended.
// They are pickles of SGLang's classes: a class is only a name here, and nothing is imported or called. Of each request,
// the ID, the times, the number of tokens, and the finish reason are kept. Prompts, answers, and keys never are.
//
// # What is odd
//
//   - For a request in flight, finished is the time of the dump, and the answer has no finish reason.
//   - Before 2025-07, a request dump may be the bare list of requests.
//   - server_args is the whole configuration, with api_key in plain text; None if it could not be pickled.
//   - A request dump is written for every thousand requests; the last ones, fewer than that, are never written.
//   - Times are Unix seconds; the one in the name of the file is local.
//   - Dumps contain whole prompts, as text and as tokens: they are dropped during reading.
var RequestDump = &format.Format{
	Name:     "SGLang request dump",
	Noun:     "request dump",
	Doc:      "requests that were in flight when SGLang crashed (crash_dump_*.pkl), and dumps of those that ended",
	For:      "'sgtrace report' or 'sgtrace requests'",
	Sniff:    isRequestDump,
	Index:    indexRequests,
	Requests: true,
	Series:   true,
}

func isRequestDump(head []byte) bool {
	return pickle.Begins(head) &&
		(bytes.Contains(head, []byte("sglang.srt.server_args")) || bytes.Contains(head, []byte("sglang.srt.managers.io_struct")))
}

// A dumpedRequest is the content of a request.
type dumpedRequest struct {
	id, room string
	prompt   int64 // tokens, or spantable.Unknown
	dp       int16
}

// An answered is the answer to a request.
type answered struct {
	id                         string
	prompt, completion, cached int64
	finish, failed             string
	status                     int64
	dp                         int16
}

// A requestReader reads one dump.
type requestReader struct {
	asked    map[any]*dumpedRequest // by the state of their objects
	answered map[any]*answered      // by their dicts
}

// indexRequests reads a dump.
func indexRequests(in *format.Input, opt *format.Options) (*format.Source, error) {
	const longText = 300 // enough for an ID and a reason, and for no prompt worth the name
	r := &requestReader{asked: map[any]*dumpedRequest{}, answered: map[any]*answered{}}
	root, err := pickle.ReadScanned(in.Open, in.Path != "", pickle.Options{Take: r.take, LongText: longText})
	f := opt.Series.Fill(in.Name, "SGLang request dump")
	n := r.rows(root, in.Name, f, opt.Records.Fill(f))
	if err != nil {
		if n == 0 {
			return nil, err
		}
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	return &format.Source{}, nil
}

// take extracts the needed fields of a request or an answer from the dicts with prompts and answers.
func (r *requestReader) take(d pickle.Value) bool {
	has := func(key string) bool { return d.Get(key).Kind != pickle.Missing }
	switch {
	case has("rid") && (has("sampling_params") || has("input_ids") || has("text")):
		r.asked[d.Key()] = askedOf(d)
		return true
	case has("meta_info"):
		r.answered[d.Key()] = answeredOf(d.Get("meta_info"))
		return true
	}
	return false
}

func askedOf(d pickle.Value) *dumpedRequest {
	a := &dumpedRequest{id: d.Get("rid").Text(), prompt: spantable.Unknown, dp: spantable.Unknown}
	if ids := d.Get("input_ids"); ids.Kind == pickle.List {
		a.prompt = int64(ids.Len())
	}
	if room, ok := d.Get("bootstrap_room").Int(); ok {
		a.room = fmt.Sprint(room)
	}
	for _, key := range []string{"data_parallel_rank", "routed_dp_rank"} {
		if n, ok := d.Get(key).Int(); ok && n >= 0 && n < math.MaxInt16 {
			a.dp = int16(n)
		}
	}
	return a
}

func answeredOf(meta pickle.Value) *answered {
	count := func(key string) int64 { return meta.Get(key).Int64(spantable.Unknown) }
	a := &answered{id: meta.Get("id").Text(), prompt: count("prompt_tokens"), completion: count("completion_tokens"), cached: count("cached_tokens"), dp: spantable.Unknown}
	if n := count("dp_rank"); n >= 0 && n < math.MaxInt16 {
		a.dp = int16(n)
	}
	finish := meta.Get("finish_reason")
	switch a.finish = finish.Get("type").Text(); {
	case finish.Kind == pickle.Text:
		a.finish = finish.Text()
	case a.finish == "abort":
		a.failed, a.status = "Aborted", finish.Get("status_code").Int64(0)
	}
	return a
}

// rows adds the requests of a dump, and returns their number.
func (r *requestReader) rows(root pickle.Value, file string, f *series.Filler, to *spantable.RequestFiller) int {
	list := root
	args := pickle.Value{}
	switch {
	case root.Kind == pickle.Dict:
		list, args = root.Get("requests"), root.Get("server_args")
	case root.Kind == pickle.Tuple: // cut off: the list is somewhere in it
		for _, v := range root.Items() {
			if v.Kind == pickle.List && v.Len() > 0 && v.At(0).Kind == pickle.Tuple {
				list = v
			}
		}
	}
	server := f.Server(serverOf(file, args))
	flying := inFlight{oldest: math.MaxInt64}
	for i, v := range list.Items() {
		row := spantable.NewRequestRecord()
		row.Line, row.Server = uint32(i+1), server
		if r.row(v, &row, to, &flying) {
			to.Add(row)
		}
	}
	if flying.n > 0 {
		place := f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: series.NoGPU})
		f.Within(0)
		f.Instant(series.Instant{Time: flying.at, Place: place, Kind: series.Crash, Count: int32(flying.n)}, flying.String())
	}
	return to.N
}

// serverOf names a server by the path of its dump: SGLang writes crash dumps into a directory named after the host.
func serverOf(file string, args pickle.Value) series.Server {
	x := series.Server{Name: filepath.ToSlash(file), Engine: "SGLang"}
	dir, name := filepath.Split(x.Name)
	if strings.HasPrefix(name, "crash_dump") && dir != "" {
		x.Host, x.Name = filepath.Base(dir), ""
	}
	switch mode := args.Get("disaggregation_mode").Text(); mode {
	case "prefill", "decode":
		x.Role = mode
	case "null":
		x.Role = "unified"
	}
	return x
}

// An inFlight counts requests that had not ended.
type inFlight struct {
	n          int
	oldest, at trace.Time
	prompt     int64 // tokens, as far as known
	tokens     int64
}

func (x *inFlight) String() string {
	text := fmt.Sprintf("crashed with %d requests in flight", x.n)
	if x.n == 1 {
		text = "crashed with 1 request in flight"
	}
	if x.prompt > 0 {
		text += fmt.Sprintf(", of %d prompt tokens and %d tokens of answers", x.prompt, x.tokens)
	}
	if x.at > x.oldest {
		text += fmt.Sprintf(", the oldest %.1f s old,", float64(x.at-x.oldest)/1e9)
	}
	return text
}

// row fills a row with a request, (obj, out, created, finished), and reports whether it is one.
func (r *requestReader) row(v pickle.Value, row *spantable.RequestRecord, to *spantable.RequestFiller, flying *inFlight) bool {
	obj := r.asked[v.At(0).State().Key()]
	if obj == nil {
		obj = r.asked[v.At(0).Key()] // a dict, if classes were not pickled
	}
	out := r.answered[v.At(1).Key()]
	if obj == nil {
		obj = &dumpedRequest{prompt: spantable.Unknown, dp: spantable.Unknown}
	}
	if out == nil {
		out = &answered{prompt: spantable.Unknown, completion: spantable.Unknown, cached: spantable.Unknown, dp: spantable.Unknown}
	}
	id := cmp.Or(obj.id, out.id)
	row.ID, row.Room = to.Text([]byte(id)), to.Text([]byte(obj.room))
	row.Start, row.End = seconds(v.At(2)), seconds(v.At(3))
	if row.Prompt = out.prompt; row.Prompt < 0 {
		row.Prompt = obj.prompt
	}
	row.Completion, row.Cached = out.completion, out.cached
	if row.DP = out.dp; row.DP < 0 {
		row.DP = obj.dp
	}
	syms := to.Symbols()
	if row.Start == 0 || id == "" {
		return false
	}
	switch {
	case out.finish == "":
		row.Reason = syms.Intern("In flight at the crash")
		flying.n++
		flying.oldest, flying.at = min(flying.oldest, row.Start), max(flying.at, row.End)
		flying.prompt += max(0, row.Prompt)
		flying.tokens += max(0, row.Completion)
	case out.failed != "":
		row.Finish = syms.Intern("abort")
		reason := out.failed
		if out.status >= 500 {
			reason = fmt.Sprintf("failed with status %d", out.status)
		}
		row.Reason = syms.Intern(reason)
	case out.finish == "stop" || out.finish == "length":
		row.Finish = syms.Intern(out.finish)
	}
	return true
}

// seconds converts Unix seconds; 0 is unknown.
func seconds(v pickle.Value) trace.Time {
	x, ok := v.Float64()
	if !ok || x < 1e9 || x > 4e9 {
		return 0
	}
	whole, part := math.Modf(x)
	return trace.Time(whole)*1e9 + trace.Time(math.Round(part*1e6))*1000
}
