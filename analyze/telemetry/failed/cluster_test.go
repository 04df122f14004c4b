package failed

import (
	"cmp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// The reason why containers ended leads its consequences: their restarts, and failed probes. Events of other pods are separate.
func TestWhyPodsAreStartedAgain(t *testing.T) {
	const (
		loop  = "pod: BackOff: container a: restarting failed container, started again 7 times"
		oom   = "pod: OOMKilled: container a: exit code 137, started again 7 times"
		ended = "pod: Terminated: container a: Error, exit code 137, started again 7 times"
		code1 = "pod: Terminated: container a: Error, exit code 1, started again 7 times"
		probe = "pod: Unhealthy: Liveness probe failed: connection refused"
	)
	type said struct{ pod, text string }
	for _, c := range []struct {
		name string
		said []said
		want string
	}{
		{"memory", []said{{"a", loop}, {"a", oom}, {"a", probe}}, "OOMKilled certain"},
		{"memory of another pod", []said{{"a", loop}, {"b", oom}}, "BackOff certain OOMKilled certain"},
		{"a probe", []said{{"a", loop}, {"a", ended}, {"a", probe}}, "Terminated, after its probes failed likely"},
		{"an end that fails probes", []said{{"a", loop}, {"a", code1}, {"a", probe}}, "Terminated certain"},
		{"nothing tells why", []said{{"a", loop}}, "BackOff certain"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("pods", "Kubernetes events")
		for k, x := range c.said {
			p := f.Place(series.Place{Server: f.Server(series.Server{Name: x.pod}), Rank: trace.NoRank, GPU: series.NoGPU})
			f.Instant(series.Instant{Time: 1_700_000_000e9 + trace.Time(k)*1e9, Kind: series.Cluster, Place: p, Line: uint32(k + 1), Count: 9}, x.text)
		}
		set.Finish(series.Known{})
		found, _ := Cluster(telemetry.Measure(set, telemetry.Options{}))
		var got []string
		for _, f := range found {
			what := strings.SplitN(f.Text, ": ", 3)[1]
			if strings.Contains(f.Text, ", after its probes failed") {
				what += ", after its probes failed"
			}
			got = append(got, what+" "+string(cmp.Or(f.Confidence, finding.Certain)))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}
