package sglang

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// ServerState reads the responses of SGLang's servers about their state: /v1/loads, /server_info, and the endpoints that
// did not respond, from the folder of SGLang's incident bundle (incident_bundle_20260806_140305), or as a
// plain response. Loads become samples of each DP rank; a scheduler that published nothing for long while it had requests becomes an
// instant, and so does an endpoint that did not respond.
//
// # What is odd
//
//   - In a bundle an answer is wrapped: {"ok":..,"status":..,"path":..,"json":{..}}; an answer that curl saved is not.
//   - Since 2026-05-29, loads are in shared memory: there is a response even if a scheduler hangs, with an old timestamp. The outer
//     timestamp is that of the response; the difference is the time for which the scheduler has hung.
//   - token_usage is that of the fullest pool, from 0 to 1.
//   - /server_info has api_key and admin_api_key in plain text. We don't read them.
//   - The time in the name of a bundle is local, without a zone; its files are not of one instant.
var ServerState = &format.Format{
	Name:      "state of a server",
	Noun:      "server state",
	Doc:       "load and configuration of SGLang's servers: /v1/loads, /server_info, and what did not answer, as its incident bundle has them",
	For:       "'sgtrace report'",
	Sniff:     isState,
	Index:     indexState,
	Series:    true,
	Momentary: true,
	Text:      true,
	Empty:     func(name string) bool { return name == "health.txt" || name == "health_generate.txt" },
}

var (
	wrapped = lazyregexp.New(`^\s*\{\s*"ok": ?(?:true|false),\s*"status": ?-?\d+,\s*"path": ?"/`)
	bundle  = lazyregexp.New(`"artifact_type": ?"incident_bundle"`)
	stamp   = lazyregexp.New(`incident_bundle_(\d{8}_\d{6})`)
)

func isState(head []byte) bool {
	text := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	has := func(key string) bool { return bytes.Contains(head, []byte(`"`+key+`"`)) }
	return wrapped.Match(text) || bundle.Match(head) || has("loads") && has("num_running_reqs") || has("tokenizer_path") && has("tp_size") && has("disaggregation_mode")
}

// A stateAnswer is a response, wrapped or not. Other fields are not read.
type stateAnswer struct {
	OK     *bool
	Status int
	Path   string
	JSON   *serverInfo
	serverInfo
}

// A serverInfo is a server's description of itself. Its API keys are not read.
type serverInfo struct {
	Timestamp string
	Loads     []loadAnswer
	Mode      string `json:"disaggregation_mode"`
	TP        int    `json:"tp_size"`
	DP        int    `json:"dp_size"`
	EP        int    `json:"ep_size"`
	PP        int    `json:"pp_size"`
	Tokenizer string `json:"tokenizer_path"`
	Internal  []struct {
		Throughput float64 `json:"last_gen_throughput"`
	} `json:"internal_states"`
}

// A loadAnswer is the load of a DP rank.
type loadAnswer struct {
	DP          int16 `json:"dp_rank"`
	Timestamp   float64
	Running     *float64 `json:"num_running_reqs"`
	Waiting     *float64 `json:"num_waiting_reqs"`
	Used        *float64 `json:"num_used_tokens"`
	Usage       *float64 `json:"token_usage"`
	Throughput  *float64 `json:"gen_throughput"`
	HitRate     *float64 `json:"cache_hit_rate"`
	Speculative struct {
		Length *float64 `json:"accept_length"`
		Rate   *float64 `json:"accept_rate"`
	}
	Disaggregation struct {
		Mode         string
		Bootstrap    *float64 `json:"prefill_bootstrap_queue_reqs"`
		OldBootstrap *float64 `json:"prefill_prealloc_queue_reqs"` // until 2026-05
		Inflight     *float64 `json:"prefill_inflight_queue_reqs"`
		Prealloc     *float64 `json:"decode_prealloc_queue_reqs"`
		Transfer     *float64 `json:"decode_transfer_queue_reqs"`
		Retracted    *float64 `json:"decode_retracted_queue_reqs"`
	}
}

// A stateReader reads one response.
type stateReader struct {
	f      *series.Filler
	server int32
	at     trace.Time // local, from the name of the bundle; 0 is unknown
}

// indexState reads an answer.
func indexState(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var a stateAnswer
	if err := json.NewDecoder(content).Decode(&a); err != nil {
		return nil, err
	}
	r := &stateReader{f: opt.Series.Fill(in.Name, "state of a server")}
	if m := stamp.FindStringSubmatch(filepath.ToSlash(in.Name)); m != nil {
		if t, err := time.Parse("20060102_150405", m[1]); err == nil {
			r.at = trace.Time(t.UnixNano())
		}
	}
	s := &a.serverInfo
	if a.JSON != nil {
		s = a.JSON
	}
	r.server = r.f.Server(series.Server{Name: strings.TrimSuffix(filepath.ToSlash(filepath.Dir(in.Name)), "/"), Engine: "SGLang", Role: roleOf(s)})
	switch {
	case a.OK != nil && !*a.OK:
		what := fmt.Sprintf("%s failed with status %d", endpoint(a.Path), a.Status)
		if a.Status < 0 {
			what = endpoint(a.Path) + " did not answer"
		}
		r.unhealthy(what)
	case len(s.Loads) > 0:
		r.loads(s)
	case s.Tokenizer != "" && a.OK != nil && len(s.Internal) == 0:
		r.unhealthy("/server_info has nothing of the scheduler: it does not answer")
	}
	return &format.Source{}, nil
}

// endpoint returns a path without its query.
func endpoint(path string) string {
	path, _, _ = strings.Cut(path, "?")
	const most = 60
	return strings.ToValidUTF8(path[:min(len(path), most)], "")
}

func roleOf(s *serverInfo) string {
	mode := s.Mode
	for i := range s.Loads {
		if m := s.Loads[i].Disaggregation.Mode; m != "" {
			mode = m
		}
	}
	switch mode {
	case "prefill", "decode":
		return mode
	case "":
		if len(s.Loads) == 0 && s.Tokenizer == "" {
			return ""
		}
	}
	return "unified"
}

// unhealthy adds an instant at the time of the bundle.
func (r *stateReader) unhealthy(text string) {
	r.f.Source().Zone.Local = r.at != 0
	place := r.f.Place(series.Place{Server: r.server, Rank: trace.NoRank, GPU: series.NoGPU})
	r.f.Within(60e9) // endpoints are asked one after the other
	r.f.Instant(series.Instant{Time: r.at, Place: place, Kind: series.Unhealthy, Count: 1}, text)
}

// loads adds the loads of DP ranks.
func (r *stateReader) loads(s *serverInfo) {
	const silent = trace.Time(30e9) // a scheduler with requests publishes its load after each step
	made, _ := time.Parse(time.RFC3339Nano, s.Timestamp)
	for i := range s.Loads {
		l := &s.Loads[i]
		at := trace.Time(l.Timestamp*1e6) * 1000
		if at == 0 && made.Year() > 1970 {
			at = trace.Time(made.UnixNano())
		}
		if at == 0 {
			continue
		}
		rank := trace.NoRank
		rank.DP = l.DP
		place := r.f.Place(series.Place{Server: r.server, Rank: rank, GPU: series.NoGPU})
		d := &l.Disaggregation
		d.Bootstrap = cmp.Or(d.Bootstrap, d.OldBootstrap)
		for _, x := range []struct {
			metric series.MetricID
			value  *float64
			times  float64
		}{{series.Running, l.Running, 1}, {series.Queued, l.Waiting, 1}, {series.KVTokens, l.Used, 1}, {series.KVUsage, l.Usage, 100}, {series.Generation, l.Throughput, 1}, {series.HitRate, l.HitRate, 100},
			{series.AcceptLength, l.Speculative.Length, 1}, {series.AcceptRate, l.Speculative.Rate, 100}, {series.Bootstrapping, d.Bootstrap, 1}, {series.Sending, d.Inflight, 1}, {series.Preallocated, d.Prealloc, 1},
			{series.Receiving, d.Transfer, 1}, {series.RetractedQueue, d.Retracted, 1}} {
			if x.value != nil {
				r.f.Add(r.f.Series(x.metric, place), at, *x.value*x.times)
			}
		}
		if late := trace.Time(made.UnixNano()) - at; made.Year() > 1970 && l.Timestamp > 0 && late > silent && l.Running != nil && *l.Running > 0 {
			r.f.Within(0)
			r.f.Instant(series.Instant{Time: at, Place: place, Kind: series.Timeout, Count: 1},
				fmt.Sprintf("its scheduler published nothing more for %.0f s, with %.0f requests running", float64(late)/1e9, *l.Running))
		}
	}
}
