package sglang

import (
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const stateSecret = "sk-CANARY-7f3a"

const loads = `{"timestamp":"2026-08-06T14:08:00.000000+00:00","version":"0.5.14","loads":[
{"dp_rank":0,"timestamp":1786025278.5,"num_running_reqs":12,"num_waiting_reqs":3,"num_used_tokens":1000,"num_total_tokens":1200,"max_total_num_tokens":20000,"token_usage":0.05,"gen_throughput":812.5,"cache_hit_rate":0.4,"disaggregation":{"mode":"decode","decode_prealloc_queue_reqs":2,"decode_transfer_queue_reqs":1,"decode_retracted_queue_reqs":0},"queues":{"waiting":3}},
{"dp_rank":1,"timestamp":1786024965.0,"num_running_reqs":40,"num_waiting_reqs":120,"token_usage":0.97,"gen_throughput":10.0,"disaggregation":{"mode":"decode"}}]}`

func readState(t testing.TB, name, text string) *series.Set {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := ServerState.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set}); err != nil && t.Name() != "FuzzRead" {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return set
}

// The load is per DP rank, wrapped or not. Stale load while requests are running means that the scheduler is stuck.
func TestLoads(t *testing.T) {
	for form, text := range map[string]string{"plain": loads, "wrapped": `{"ok": true, "status": 200, "path": "/v1/loads?include=all", "json": ` + loads + `}`} {
		if !isState([]byte(text)) {
			t.Errorf("%s is not recognized", form)
		}
		set := readState(t, "b/incident_bundle_20260806_140801/loads_all.json", text)
		got := map[string]float64{}
		for i := range set.List {
			for x := range set.Each(i) {
				got[set.Places[set.List[i].Place].Rank.String()+" "+set.Metric(set.List[i].Metric).Name] = x.Value
			}
		}
		for key, want := range map[string]float64{"DP0 running": 12, "DP0 queued": 3, "DP0 KV usage": 5, "DP0 preallocation queue": 2, "DP1 running": 40, "DP1 KV usage": 97} {
			if got[key] != want {
				t.Errorf("%s: %s is %v, want %v", form, key, got[key], want)
			}
		}
		if len(set.Instants) != 1 || set.Places[set.Instants[0].Place].Rank.DP != 1 || set.Syms.Name(set.Instants[0].Text) != "its scheduler published nothing more for 315 s, with 40 requests running" {
			t.Errorf("%s: %+v", form, set.Instants)
		}
		if s := set.Servers[0]; s.Role != "decode" || s.Engine != "SGLang" {
			t.Errorf("%s: %+v", form, s)
		}
	}
}

// An endpoint that did not answer is an event at the time of the bundle. Keys are not kept.
func TestAnswers(t *testing.T) {
	for text, want := range map[string]string{
		`{"ok": false, "status": 503, "path": "/health_generate", "error": "` + stateSecret + `"}`:                                                                                      "/health_generate failed with status 503",
		`{"ok": false, "status": -1, "path": "/health", "error": "timed out"}`:                                                                                                          "/health did not answer",
		`{"ok": true, "status": 200, "path": "/server_info", "json": {"model_path":"m","tokenizer_path":"m","tp_size":8,"disaggregation_mode":"null","api_key":"` + stateSecret + `"}}`: "/server_info has nothing of the scheduler: it does not answer",
		`{"ok": true, "status": 200, "path": "/server_info", "json": {"tokenizer_path":"m","tp_size":8,"disaggregation_mode":"null","internal_states":[{"last_gen_throughput":3}]}}`:    "",
		`{"artifact_type": "incident_bundle", "base_url": "http://x", "collected_at": "20260806_140801"}`:                                                                               "",
	} {
		if !isState([]byte(text)) {
			t.Errorf("%s is not recognized", text)
		}
		set := readState(t, "incident_bundle_20260806_140801/x.json", text)
		got := ""
		for _, x := range set.Instants {
			got = set.Syms.Name(x.Text)
			if x.Time == 0 {
				t.Errorf("%s has no time", got)
			}
		}
		if got != want {
			t.Errorf("%s: %q", text, got)
		}
		for _, name := range set.Syms.Names() {
			if strings.Contains(name, stateSecret) {
				t.Errorf("keeps %q", name)
			}
		}
	}
}

func FuzzServerState(f *testing.F) {
	f.Add(loads)
	f.Fuzz(func(t *testing.T, text string) { readState(t, "x.json", text) })
}
