package inputs

import (
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A copy of a log does not count as another server, whatever its compression. Logs that only begin alike, and scrapes,
// which may be the same at another moment, are kept.
func TestRepeatedLogs(t *testing.T) {
	const line = "[2026-08-17 20:53:2%d TP0] Decode batch. #running-req: 1, #token: 10, token usage: 0.01, cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 0, "
	log := func(n int) (text string) {
		for i := range n {
			text += strings.Replace(line, "%d", string(rune('0'+i)), 1) + "\n"
		}
		return text
	}
	const metrics = "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model_name=\"m\"} 1\n"
	tree(t, "d/a.log = "+log(5), "d/copy.log = "+log(5), "d/b.log = "+log(6), "d/a.prom = "+metrics, "d/b.prom = "+metrics)
	f, err := os.Create("d/old.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	content, err := os.ReadFile("d/a.log")
	if err == nil {
		_, err = z.Write(content)
	}
	if err != nil || z.Close() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	found, err := Find([]string{"d"})
	if err != nil {
		t.Fatal(err)
	}
	var diags trace.Diags
	in, err := Load(found, Options{}, &diags)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var left, used []string
	for _, d := range diags.All() {
		if d.Message == trace.CaptureRepeated {
			left = append(left, d.Pos.File+": "+d.Msg)
		}
	}
	for _, x := range in.Used {
		used = append(used, x.Name)
	}
	if got := strings.Join(used, " "); got != "d/a.log d/a.prom d/b.log d/b.prom" || len(left) != 2 {
		t.Errorf("used %s; left out: %s", got, left)
	}
}
