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

// Tables are read by column positions, with the time printed before them. In a file without times, the last table counts.
func TestPrinted(t *testing.T) {
	const when = "Mon Aug 17 20:53:20 UTC 2026\n"
	for _, c := range []struct{ name, text, want, code string }{
		{"docker stats", when + `CONTAINER ID   NAME     CPU %     MEM USAGE / LIMIT   MEM %
0a1b2c3d4e5f   engine   310.50%   3GiB / 4GiB         75.00%
`, "container CPU engine GPU-1 0=310.5\ncontainer_memory_working_set_bytes engine GPU-1 0=3221225472\ncontainer_spec_memory_limit_bytes engine GPU-1 0=4294967296\n", ""},
		{"kubectl top", "2026-08-17T20:53:20Z\nNAME            CPU(cores)   MEMORY(bytes)\nengine-0   4100m        2Mi\n2026-08-17T20:53:35Z\nNAME            CPU(cores)   MEMORY(bytes)\nengine-0   2            3Mi\n",
			"container cores engine-0 GPU-1 0=4.1 15=2\ncontainer_memory_working_set_bytes engine-0 GPU-1 0=2097152 15=3145728\n", ""},
		{"rocm-smi", when + `
=================== ROCm System Management Interface ===================
Device  Node  IDs            Temp        Power   SCLK     MCLK     Fan  GPU%
              (DID,   GUID)  (Junction)  (Socket)
========================================================================
1       3     0x1,    4711   45.0°C      152.0W  133Mhz   900Mhz   0%   7%
`, "SM clock  GPU1 0=133\nmemory clock  GPU1 0=900\ntemperature  GPU1 0=45\npower  GPU1 0=152\nGPU busy  GPU1 0=7\n", ""},
		{"free", when + "               total        used        free      shared  buff/cache   available\nMem:           503Gi       120Gi       300Gi       2.0Gi        83Gi         2Gi\nSwap:             0B          0B          0B\n",
			"node_memory_MemAvailable_bytes  GPU-1 0=2147483648\nnode_memory_MemTotal_bytes  GPU-1 0=5.400921375e+11\n", ""},
		{"free, in MiB", when + "       total   used   free  available\nMem:   65536   60000  5000  1024\n", "node_memory_MemAvailable_bytes  GPU-1 0=1073741824\nnode_memory_MemTotal_bytes  GPU-1 0=6.871947674e+10\n", ""},
		{"dcgmi dmon", "#Entity   SMCLK  TMPTR\nID                     C\nGPU 0     1980   60\nGPU 1     600    88\n#Entity   SMCLK  TMPTR\nID                     C\nGPU 0     1980   61\n", "SM clock  GPU0 0=1980\nSM clock  GPU1\ntemperature  GPU0 0=61\ntemperature  GPU1\n", "tables-untimed"},
		{"nvidia-smi", when + `+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|   3  NVIDIA H200                    On  | 00000000:19:00.0 Off |                    0 |
| N/A   38C    P0            72W /  700W |     10MiB /  20MiB |     99%      Default |
|   4  NVIDIA H200                    On  | 00000000:2A:00.0 Off |                    0 |
| N/A   ERR!   P0            N/A /  700W |     10MiB /  20MiB |     ERR!      Default |
`, "temperature  GPU3 0=38\npower  GPU3 0=72\nGPU memory used  GPU3 0=10485760\nGPU memory used  GPU4 0=10485760\nGPU memory  GPU3 0=20971520\nGPU memory  GPU4 0=20971520\nGPU busy  GPU3 0=99\n" + gpuIsLost + "\n", ""},
	} {
		if !Printed.Sniff([]byte(c.text)) {
			t.Errorf("%s: not recognized", c.name)
		}
		syms, diags := trace.NewSymbols(), &trace.Diags{}
		set := series.New(syms, diags)
		in := &format.Input{Name: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.text)), nil }}
		if _, err := indexPrinted(in, &format.Options{Syms: syms, Diags: diags, Series: set}); err != nil {
			t.Fatal(err)
		}
		set.Finish(series.Known{})
		got, code := showPrinted(set), ""
		if list := diags.All(); len(list) > 0 {
			code = list[0].Code
		}
		if !sameLines(got, c.want) || code != c.code {
			t.Errorf("%s: %s\n%s\nwant\n%s", c.name, code, got, c.want)
		}
	}
}

// showPrinted prints all samples, with times in s since the first one.
func showPrinted(s *series.Set) string {
	var b strings.Builder
	first, _, _ := s.Bounds()
	for i, x := range s.List {
		p := &s.Places[x.Place]
		fmt.Fprintf(&b, "%s %s GPU%d", s.Metric(x.Metric).Name, p.User, p.GPU)
		for v := range s.Each(i) {
			fmt.Fprintf(&b, " %d=%.10g", (v.Time-first)/1e9, v.Value)
		}
		b.WriteByte('\n')
	}
	for _, x := range s.Instants {
		b.WriteString(s.Syms.Name(x.Text) + "\n")
	}
	return b.String()
}

// sameLines reports whether two texts have the same lines in any order.
func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// amd-smi has the time in a column and aligns to the right; promtool prints the values of a series below its name.
func TestPrintedElsewhere(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	const text = "TIMESTAMP   GPU  POWER   GPU_T   GFX_CLK   GFX%\n1787000000    1   72 W   45 °C   900 MHz   99 %\n1787000005    1   73 W   46 °C   901 MHz   98 %\n"
	in := &format.Input{Name: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := indexPrinted(in, &format.Options{Syms: set.Syms, Diags: set.Diags, Series: set}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	if got, want := showPrinted(set), "SM clock  GPU1 0=900 5=901\ntemperature  GPU1 0=45 5=46\npower  GPU1 0=72 5=73\nGPU busy  GPU1 0=99 5=98\n"; !sameLines(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const query = "vllm:num_requests_waiting{pod=\"a\", engine=\"0\"} =>\n3 @[1787000000]\n4 @[1787000015.5]\n"
	if !Prometheus.Sniff([]byte(query)) {
		t.Error("promtool: not recognized")
	}
	if set, _ := read(t, query); show(set) != "queued /a/unified DP0 TP-1 GPU-1  0=3 15500000000=4\n" {
		t.Errorf("promtool: %s", show(set))
	}
}
