package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// scrapeClocks writes DCGM metrics for the GPUs of the traces; the GPU of slow has a lower clock.
func scrapeClocks(t *testing.T, path string, truth *torch.Truth, slow *torch.FileTruth) {
	t.Helper()
	var all []string
	seen := map[string]bool{}
	for i := range truth.Files {
		f := &truth.Files[i]
		labels := fmt.Sprintf(`"gpu":"%d","UUID":"GPU-%x","Hostname":"%s"`, f.Device, i, f.Host)
		if seen[labels] {
			continue
		}
		seen[labels] = true
		clock, reasons := 1980, 0
		if f.Host == slow.Host && f.Device == slow.Device {
			clock, reasons = 1410, 0x48
		}
		for name, v := range map[string]int{"DCGM_FI_DEV_SM_CLOCK": clock, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": reasons, "DCGM_FI_DEV_GPU_UTIL": 90} {
			var values []string
			for at := truth.FromNs/1e9 - 90; at < truth.ToNs/1e9+60; at += 15 {
				values = append(values, fmt.Sprintf(`[%d,"%d"]`, at, v))
			}
			all = append(all, fmt.Sprintf(`{"metric":{"__name__":"%s",%s},"values":[%s]}`, name, labels, strings.Join(values, ",")))
		}
	}
	text := `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(all, ",") + "]}}"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// If the straggler's GPU has a low clock, that finding leads, with the late rank as its evidence. A
// low clock on a different GPU is not blamed.
func TestClockOfStraggler(t *testing.T) {
	config := simulator.DefaultConfig(5)
	config.Straggler = simulator.Straggler{TP: 1, Factor: 1.4}
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	c := torch.DefaultConfig(run)
	c.To, c.Layers, c.Stacks, c.Gzip = c.From+400*time.Millisecond, 4, 0, false
	dir := t.TempDir()
	truth, err := torch.WriteDir(dir, run, c)
	if err != nil {
		t.Fatal(err)
	}
	metrics := filepath.Join(dir, "metrics.json")
	report := func(inputs ...string) (clocks, late []string) {
		var d struct{ Findings []struct{ Kind, Text string } }
		if err := json.Unmarshal([]byte(sgtrace(t, dir, append([]string{"report", "--format", "json"}, inputs...)...).out), &d); err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings {
			switch {
			case strings.HasPrefix(f.Text, "the SM clock of ") && strings.Contains(f.Text, "thermal slowdown by hardware"):
				clocks = append(clocks, f.Text)
			case f.Kind == "straggler":
				late = append(late, f.Text)
			}
		}
		return clocks, late
	}
	_, late := report("torch")
	if len(late) == 0 || !strings.Contains(late[0], "as if its GPU clock were lower") {
		t.Fatalf("no rank is late: %q", late)
	}
	who, _, _ := strings.Cut(late[0], " arrives")
	led := false
	for i := range truth.Files {
		scrapeClocks(t, metrics, truth, &truth.Files[i])
		clocks, others := report("torch", "metrics.json")
		if len(clocks) != 1 {
			t.Fatalf("%q", clocks)
		}
		if its := strings.HasPrefix(clocks[0], "the SM clock of "+who+"'s GPU was 1,410 MHz"); its {
			led = true
			if len(others) != len(late)-1 || !strings.Contains(clocks[0], " is late in its collectives") {
				t.Errorf("its clock is low: %q, %q", clocks, others)
			}
		} else if len(others) != len(late) || strings.Contains(others[0], "as if its GPU clock were lower") || !strings.Contains(others[0], "metrics have its clock as high as others") {
			t.Errorf("another clock is low: %q, %q", clocks, others)
		}
	}
	if !led {
		t.Errorf("%s is late, but none of the GPUs is its", who)
	}
}
