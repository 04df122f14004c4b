package platform

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// readOTLP reads undamaged metrics.
func readOTLP(t *testing.T, text string) *series.Set {
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "metrics", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := OTLPMetrics.Index(in, &format.Options{Series: set, Diags: diags}); err != nil || len(diags.All()) > 0 {
		t.Fatal(err, diags.All())
	}
	set.Finish(series.Known{})
	return set
}

// TestOTLPMetrics reads the same values from OTLP, with both temporalities, as from Prometheus.
func TestOTLPMetrics(t *testing.T) {
	const prometheus = `{"status":"success","data":{"resultType":"matrix","result":[` +
		`{"metric":{"__name__":"vllm:num_requests_running","instance":"10.0.0.5:8000","pod":"llm-0","engine":"0"},"values":[[1787007200,"3"],[1787007215,"4"]]},` +
		`{"metric":{"__name__":"vllm:generation_tokens_total","instance":"10.0.0.5:8000","pod":"llm-0","engine":"0"},"values":[[1787007200,"100"],[1787007215,"250"]]},` +
		`{"metric":{"__name__":"vllm:time_to_first_token_seconds_bucket","le":"0.5","instance":"10.0.0.5:8000","pod":"llm-0","engine":"0"},"values":[[1787007200,"2"],[1787007215,"5"]]},` +
		`{"metric":{"__name__":"vllm:time_to_first_token_seconds_bucket","le":"+Inf","instance":"10.0.0.5:8000","pod":"llm-0","engine":"0"},"values":[[1787007200,"3"],[1787007215,"7"]]}]}}`
	resource := `{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.instance.id","value":{"stringValue":"10.0.0.5:8000"}},{"key":"k8s.pod.name","value":{"stringValue":"llm-0"}}]},"scopeMetrics":[{"metrics":[`
	otlp := func(temporality int, running, tokens, below, all [2]int) (text string) {
		for i, at := range []string{"1787007200", "1787007215"} {
			point := `{"attributes":[{"key":"engine","value":{"stringValue":"0"}}],"timeUnixNano":"` + at + `000000000",`
			text += resource + fmt.Sprintf(`{"name":"vllm:num_requests_running","gauge":{"dataPoints":[%s"asDouble":%d}]}},`, point, running[i]) +
				fmt.Sprintf(`{"name":"vllm:generation_tokens","sum":{"aggregationTemporality":%d,"isMonotonic":true,"dataPoints":[%s"asInt":"%d"}]}},`, temporality, point, tokens[i]) +
				fmt.Sprintf(`{"name":"vllm:time_to_first_token_seconds","histogram":{"aggregationTemporality":%d,"dataPoints":[%s"count":"%d","bucketCounts":["%d",%d],"explicitBounds":[0.5]}]}}`,
					temporality, point, all[i], below[i], all[i]-below[i]) + "]}]}]}\n"
		}
		return text
	}
	told := func(s *series.Set) (all []string) {
		for i := range s.List {
			x := &s.List[i]
			if m := s.Metric(x.Metric); strings.HasSuffix(m.Name, "_count") {
				continue // absent from the Prometheus query
			}
			p := s.Places[x.Place]
			for v := range s.Each(i) {
				all = append(all, fmt.Sprint(s.Metric(x.Metric).Name, " ", s.Metric(x.Metric).Kind, " ", x.Most, " ", s.Servers[p.Server], " ", p.Rank.DP, " ", v.Time, " ", v.Value))
			}
		}
		slices.Sort(all)
		return all
	}
	want, _ := read(t, prometheus)
	for name, text := range map[string]string{
		"cumulative": otlp(2, [2]int{3, 4}, [2]int{100, 250}, [2]int{2, 5}, [2]int{3, 7}),
		"delta":      otlp(1, [2]int{3, 4}, [2]int{100, 150}, [2]int{2, 3}, [2]int{3, 4}),
	} {
		if got := readOTLP(t, text); !slices.Equal(told(got), told(want)) {
			t.Errorf("%s:\n%s\nnot\n%s", name, strings.Join(told(got), "\n"), strings.Join(told(want), "\n"))
		}
	}
}

// TestOTLPExponential has 2 values in (0.5, 1], 3 in (1, 2], and 1 in (2, 4], in buckets of scale 0, and the same values in scale 1.
func TestOTLPExponential(t *testing.T) {
	for _, buckets := range []string{`"scale":0,"positive":{"offset":-1,"bucketCounts":["2","3","1"]}`, `"scale":1,"positive":{"offset":-2,"bucketCounts":["1","1","0","3","1"]}`} {
		s := readOTLP(t, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"http.server.request.duration","unit":"s","exponentialHistogram":{"dataPoints":[{"timeUnixNano":"1787007200000000000","count":"6",`+buckets+`}]}}]}]}]}`)
		got := map[float64]float64{}
		for i := range s.List {
			if s.Metric(s.List[i].Metric).Name == "http_server_request_duration_seconds_bucket" {
				for v := range s.Each(i) {
					got[s.List[i].Most] = v.Value
				}
			}
		}
		if got[0.5] != 0 || got[1] != 2 || got[2] != 5 || got[4] != 6 || got[8] != 6 {
			t.Errorf("%s: %v", buckets, got)
		}
	}
}
