package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/trace"
)

// Hosts that a dump knows only by machine ID get the names in their logs and metrics. They are matched by the tokens each computed and
// counted, or by the addresses in the gateway's requests. If all prompts have the same length, nothing distinguishes them, and the IDs
// stay.
func TestNamesOfServers(t *testing.T) {
	for _, c := range []struct {
		name          string
		gateway, logs bool
		metric        string
		sigma         float64
		by            string // "" if they cannot be matched
	}{
		{"by prompts", false, true, "", 1, "the prompts"},
		{"by addresses", true, false, "sglang:num_running_reqs", 1, "the address"},
		{"by counters", false, false, "sglang:prompt_tokens_total", 1, "the tokens of prompts that both count"},
		{"prompts of one length", false, true, "", 0, ""},
		{"nothing in common", false, false, "sglang:num_running_reqs", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := cluster.DefaultConfig(3)
			config.Gateway, config.Length = c.gateway, 40*time.Second
			config.Pools[0].Cached, config.Pools[0].Prompt = 0, simulator.Lengths{Median: 600, Sigma: c.sigma, Max: 16000}
			run, err := cluster.Play(config)
			if err != nil {
				t.Fatal(err)
			}
			var files []inputs.Input
			write := func(name string, of func(*bytes.Buffer) error) {
				var b bytes.Buffer
				if err := of(&b); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
				files = append(files, inputs.Input{Name: file})
			}
			pod := func(i int) string { return fmt.Sprintf("llm-%c", 'c'-i) }
			write("otel.jsonl", func(b *bytes.Buffer) error { return cluster.Write(b, run) })
			for i := range run.Servers {
				if c.logs {
					write(pod(i)+".log", func(b *bytes.Buffer) error {
						return cluster.WriteLog(b, run, i, cluster.Logging{Layout: cluster.Layouts[0]})
					})
				}
			}
			if c.metric != "" {
				write("metrics.json", func(b *bytes.Buffer) error {
					fmt.Fprint(b, `{"status": "success", "data": {"resultType": "matrix", "result": [`)
					for i, s := range run.Servers {
						if i > 0 {
							b.WriteString(", ")
						}
						fmt.Fprintf(b, `{"metric": {"__name__": %q, "instance": "%s:30000", "pod": %q}, "values": [`, c.metric, run.Hosts[s.Host].Address, pod(i))
						for k := range int64(20) {
							at := run.Start + 2e9*k
							if k > 0 {
								b.WriteString(", ")
							}
							fmt.Fprintf(b, `[%d.%03d, "%d"]`, at/1e9, at/1e6%1000, answered(run, i, at))
						}
						b.WriteString("]}")
					}
					b.WriteString("]}}")
					return nil
				})
			}
			var diags trace.Diags
			in, of, err := Read(files, inputs.Options{}, ranks.Options{}, &diags)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			for i, s := range run.Servers {
				id := run.Hosts[s.Host].ID
				want := pod(i)
				if c.by == "" {
					want = id[:8]
				}
				if got := of.Names.Host(id); got != want {
					t.Errorf("%s is called %s, want %s", id, got, want)
				}
			}
			said := ""
			for _, d := range diags.All() {
				if d.Code == trace.HostsNamed.Code {
					said = d.String()
				}
			}
			if (said != "") != (c.by != "") || !strings.Contains(said, c.by) {
				t.Errorf("it says %q, want by %q", said, c.by)
			}
		})
	}
}

// answered returns the number of prompt tokens that a server has answered by a time.
func answered(run *cluster.Run, server int, by int64) (tokens int) {
	for _, q := range run.Requests {
		if h := q.Halves[0]; h.Server == server && h.End > 0 && h.End <= by && !q.Health {
			tokens += q.Prompt
		}
	}
	return tokens
}
