package platform

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/series"
)

// What counters say in a single scrape is since the process began. Mistakes of clients are no failures, and what a counter of failures has, too, is not counted twice.
func TestCountedInOneScrape(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"TGI", "tgi_request_count 5200\ntgi_request_failure{err=\"overloaded\"} 240\ntgi_request_failure{err=\"validation\"} 31\ntgi_request_failure{err=\"generation\"} 39\n",
			"answers 5200; refused 240; server errors 39"},
		{"Triton", "nv_inference_request_success{model=\"m\"} 8192\nnv_inference_request_failure{model=\"m\",reason=\"BACKEND\"} 412\nnv_inference_request_failure{model=\"m\",reason=\"CANCELED\"} 25\n",
			"answers 8629; server errors 412"},
		{"Dynamo", "dynamo_frontend_requests_total{error_type=\"\",status=\"success\"} 940\ndynamo_frontend_requests_total{error_type=\"not_found\",status=\"error\"} 12\n" +
			"dynamo_frontend_requests_total{error_type=\"response_timeout\",status=\"error\"} 58\n", "answers 1010; server errors 58"},
		{"Ray Serve", "ray_serve_deployment_request_counter_total{deployment=\"LLM\"} 816\nray_serve_deployment_error_counter_total{deployment=\"LLM\"} 64\n", "answers 880; server errors 64"},
		{"LiteLLM", "litellm_proxy_total_requests_metric_total{requested_model=\"a\"} 1290\nlitellm_proxy_failed_requests_metric_total{exception_status=\"404\"} 6\n" +
			"litellm_proxy_failed_requests_metric_total{exception_status=\"None\"} 90\n", "answers 1290; server errors 90"},
		{"few of many", "http_requests_total{status=\"2xx\"} 40000\nhttp_requests_total{status=\"5xx\"} 3\n", ""},
	} {
		set, _ := read(t, "Mon Jun  2 10:00:00 UTC 2025\n"+test.text)
		var got []string
		for i := range set.List {
			x := &set.List[i]
			if x.Metric >= series.KnownMetrics {
				continue
			}
			for v := range set.Each(i) {
				got = append(got, fmt.Sprintf("%s %.0f", set.Metric(x.Metric).Name, v.Value))
			}
			if !strings.HasSuffix(set.Syms.Name(x.Label), series.SinceBegun) {
				t.Errorf("%s: %s", test.name, set.Syms.Name(x.Label))
			}
		}
		if slices.Sort(got); strings.Join(got, "; ") != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A series that begins later than others began at 0. Between two scrapes, only what grew counts.
func TestCountedBetweenScrapes(t *testing.T) {
	set, _ := read(t, "Mon Jun  2 10:00:00 UTC 2025\ntgi_request_count 100\nenvoy_cluster_upstream_rq_timeout{envoy_cluster_name=\"vllm\"} 7\n"+
		"Mon Jun  2 10:05:00 UTC 2025\ntgi_request_count 150\ntgi_request_failure{err=\"generation\"} 5\nenvoy_cluster_upstream_rq_timeout{envoy_cluster_name=\"vllm\"} 9\n")
	var got []string
	for i := range set.List {
		if x := &set.List[i]; x.Metric < series.KnownMetrics {
			for v := range set.Each(i) {
				got = append(got, fmt.Sprintf("%s %.0f %s", set.Metric(x.Metric).Name, v.Value, set.Syms.Name(x.Label)))
			}
		}
	}
	for _, x := range set.Instants {
		got = append(got, set.Servers[set.Places[x.Place].Server].Name+" "+set.Syms.Name(x.Text))
	}
	if want := []string{"server errors 5 tgi_request_failure (generation: 5)", "answers 50 tgi", "vllm counts 2 requests that timed out (envoy_cluster_upstream_rq_timeout)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without the time at which a container ended, it ended before the first scrape that counts another restart.
func TestKubeRestarts(t *testing.T) {
	text := ""
	for i, n := range []string{"2", "2", "3", "3"} {
		text += fmt.Sprintf("kube_pod_container_status_restarts_total{pod=\"vllm-0\",container=\"vllm\"} %s %d\n", n, 1787000000000+i*15000)
	}
	set, _ := read(t, text+"kube_pod_container_status_last_terminated_reason{pod=\"vllm-0\",container=\"vllm\",reason=\"OOMKilled\"} 1 1787000045000\n")
	if len(set.Instants) != 1 || set.Instants[0].Time != 1787000030e9 || set.Syms.Name(set.Instants[0].Text) != "pod: OOMKilled: container vllm, started again 3 times" {
		t.Errorf("%+v", set.Instants)
	}
}

// States in gauges of kube-state-metrics are those in the status of a pod. Prometheus may keep their pod as exported_pod. Quoted text is read as well.
func TestKubeStates(t *testing.T) {
	const text = `Mon Jun  2 10:00:00 UTC 2025
# TYPE kube_pod_container_status_restarts_total counter
kube_pod_container_status_restarts_total{pod="ksm-0",exported_pod="vllm-0",exported_container="vllm",container="ksm"} 7
kube_pod_container_status_last_terminated_reason{pod="ksm-0",exported_pod="vllm-0",exported_container="vllm",container="ksm",reason="OOMKilled"} 1
kube_pod_container_status_waiting_reason{pod="vllm-1",container="vllm",reason="CrashLoopBackOff"} 0
kube_pod_container_status_waiting_reason{pod="vllm-2",container="vllm",reason="ImagePullBackOff"} 1
kube_node_status_condition{node="gpu07",condition="Ready",status="true"} 0
kube_node_status_condition{node="gpu07",condition="Ready",status="unknown"} 1
kube_node_status_condition{node="gpu07",condition="Ready",status="false"} 0
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="3",Hostname="gpu07"} 2
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="2",Hostname="gpu07"} 0
`
	for _, lines := range []string{text, "> " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n> ") + "\n"} {
		if !isText([]byte(lines)) {
			t.Fatal("it is not taken for metrics")
		}
		set, _ := read(t, lines)
		var got []string
		for _, x := range set.Instants {
			s := set.Servers[set.Places[x.Place].Server]
			got = append(got, s.Host+s.Name+" "+set.Syms.Name(x.Text))
		}
		slices.Sort(got)
		if want := []string{"gpu07 memory of GPU 3 has had 2 uncorrectable errors since its driver was loaded", "gpu07 node: NodeNotReady: whether it is ready is unknown",
			"vllm-0 pod: OOMKilled: container vllm, started again 7 times", "vllm-2 pod: ImagePullBackOff: container vllm"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
