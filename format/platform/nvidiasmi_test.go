package platform_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/platform"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// smi reads the output of nvidia-smi, and returns its samples as text: GPU, metric, time, value.
func smi(t *testing.T, text string) (samples []string, diags []trace.Diag, err error) {
	t.Helper()
	if !platform.NvidiaSMI.Sniff([]byte(text)) {
		t.Fatalf("is not recognized: %s", text)
	}
	d := &trace.Diags{}
	set := series.New(trace.NewSymbols(), d)
	in := &format.Input{Name: "logs/node7.csv", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err = platform.NvidiaSMI.Index(in, &format.Options{Syms: set.Syms, Diags: d, Series: set}); err != nil {
		return nil, nil, err
	}
	set.Finish(series.Known{})
	for i := range set.List {
		s := &set.List[i]
		p := &set.Places[s.Place]
		for x := range set.Each(i) {
			samples = append(samples, fmt.Sprintf("%s %d %s: %s %s = %g", set.Servers[p.Server].Host, p.GPU, p.UUID, set.Metric(s.Metric).Name, time.Unix(0, int64(x.Time)).UTC().Format("01-02 15:04:05.000"), x.Value))
		}
	}
	for i := range set.Instants {
		samples = append(samples, fmt.Sprint(set.Instants[i].Kind, ": ", set.Syms.Name(set.Instants[i].Text)))
	}
	return samples, slices.DeleteFunc(d.All(), func(x trace.Diag) bool { return x.Code == trace.LogZoneUnknown.Code }), nil
}

func TestNvidiaSMI(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"CSV with units", "timestamp, index, name, uuid, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W], memory.used [MiB], clocks_event_reasons.active, pstate\n" +
			"2026/11/27 17:35:12.308, 3, NVIDIA H200, GPU-17, 96 %, 1635 MHz, 274.72 W, 512 MiB, 0x0000000000000048, P0\n",
			[]string{"node7 3 GPU-17: GPU busy 11-27 17:35:12.308 = 96", "node7 3 GPU-17: SM clock 11-27 17:35:12.308 = 1635", "node7 3 GPU-17: power 11-27 17:35:12.308 = 274.72",
				"node7 3 GPU-17: nvidia-smi memory.used 11-27 17:35:12.308 = 512", "node7 3 GPU-17: throttle reasons 11-27 17:35:12.308 = 72"}},
		{"no units, old names, one reason a column, GPUs by bus", "timestamp, pci.bus_id, clocks.current.sm [MHz], clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_thermal_slowdown\n" +
			"2026/11/27 17:35:12.308, 00000000:00:06.0, 345, Not Active, Not Active\n2026/11/27 17:35:12.310, 00000000:00:07.0, 1200, Active, Active\n2026/11/27 17:35:13.308, 00000000:00:06.0, [N/A], [N/A], [N/A]\n",
			[]string{"node7 0 : SM clock 11-27 17:35:12.308 = 345", "node7 0 : throttle reasons 11-27 17:35:12.308 = 0", "node7 1 : SM clock 11-27 17:35:12.310 = 1200", "node7 1 : throttle reasons 11-27 17:35:12.310 = 68"}},
		{"a header again and again, and a GPU that is lost", "timestamp, index, clocks.current.sm [MHz]\n2026/11/27 17:35:12.308, 0, 1980 MHz\ntimestamp, index, clocks.current.sm [MHz]\n2026/11/27 17:35:13.308, 0, [GPU is lost]\n",
			[]string{"node7 0 : SM clock 11-27 17:35:12.308 = 1980", "hardware: Xid 79: GPU has fallen off the bus, or cannot be reached"}},
		{"a stamp with a zone that a script put there", "timestamp, index, power.draw\n2026-11-27T17:35:12+08:00, 0, 80\n2026-11-27T17:35:12.5-01:30, 0, 90\n",
			[]string{"node7 0 : power 11-27 09:35:12.000 = 80", "node7 0 : power 11-27 19:05:12.500 = 90"}},
		{"dmon", "#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk \n#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %    MHz    MHz \n" +
			" 20261127    17:35:12       1     83     40      -     95      7   3201   1605 \n",
			[]string{"node7 1 : power 11-27 17:35:12.000 = 83", "node7 1 : temperature 11-27 17:35:12.000 = 40", "node7 1 : GPU busy 11-27 17:35:12.000 = 95", "node7 1 : nvidia-smi mem 11-27 17:35:12.000 = 7",
				"node7 1 : memory clock 11-27 17:35:12.000 = 3201", "node7 1 : SM clock 11-27 17:35:12.000 = 1605"}},
		{"dmon as CSV", "#Date, Time, gpu, pwr, pclk\n#YYYYMMDD, HH:MM:SS, Idx, W, MHz\n 20261127, 17:35:12, 0, 83, 345\n",
			[]string{"node7 0 : power 11-27 17:35:12.000 = 83", "node7 0 : SM clock 11-27 17:35:12.000 = 345"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, diags, err := smi(t, test.text)
			if err != nil || strings.Join(got, "\n") != strings.Join(test.want, "\n") || len(diags) != 0 {
				t.Errorf("got\n%s\n%v, %v; want\n%s", strings.Join(got, "\n"), err, diags, strings.Join(test.want, "\n"))
			}
		})
	}
}

// Timestamps without a date may cross midnight. Rows without a time and lines that are not rows are reported.
func TestNvidiaSMIDamaged(t *testing.T) {
	got, diags, err := smi(t, "#Time         gpu   pclk \n#HH:MM:SS     Idx    MHz \n 23:59:59       0    345 \n 00:00:01       0   1980 \n")
	if err != nil || len(got) != 2 || len(diags) != 1 || diags[0].Code != "log-no-date" {
		t.Fatalf("%q, %v, %v", got, diags, err)
	}
	if !strings.Contains(got[0], " 23:59:59.000 = 345") || !strings.Contains(got[1], " 00:00:01.000 = 1980") || got[0][:len("node7 0 : SM clock 11-27")] == got[1][:len("node7 0 : SM clock 11-27")] {
		t.Errorf("midnight: %q", got)
	}
	if _, _, err := smi(t, "# gpu    pwr   pclk \n# Idx      W    MHz \n    0     83    345 \n"); err == nil || !strings.Contains(err.Error(), "no time") {
		t.Errorf("without a time: %v", err)
	}
	got, diags, err = smi(t, "timestamp, index, clocks.current.sm [MHz]\n2026/11/27 17:35:12.308, 0, 1980 MHz\n2026/11/27 17:35:\nUnable to determine the device handle for GPU0\n")
	if err != nil || len(got) != 1 || len(diags) != 1 || diags[0].Code != "metrics-bad-line" || !strings.Contains(diags[0].Msg, "2, the first is line 3") {
		t.Errorf("%q, %v, %v", got, diags, err)
	}
}

// nvidia-smi -q describes one moment: only problems are reported, and not the clock counters, which
// accumulate since the driver was loaded.
func TestQuery(t *testing.T) {
	const text = `
==============NVSMI LOG==============

Timestamp                                 : Sun Jan  4 04:51:39 2026
Driver Version                            : 580.95.05

Attached GPUs                             : 2
GPU 0000000F:01:00.0
    GPU Recovery Action                   : None
    Clocks Event Reasons
        SW Power Cap                      : Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    Clocks Event Reasons Counters
        HW Thermal Slowdown               : 903158 us
    ECC Errors
        Volatile
            SRAM Correctable              : 7
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
GPU 00000000:9B:00.0
    GPU Recovery Action                   : Reset
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
`
	if !platform.NvidiaSMI.Sniff([]byte(text)) {
		t.Fatal("not recognized")
	}
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := series.New(syms, diags)
	in := &format.Input{Name: "node1.txt", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := platform.NvidiaSMI.Index(in, &format.Options{Syms: syms, Diags: diags, Series: set}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	var got []string
	for _, x := range set.Instants {
		got = append(got, set.Syms.Name(x.Text))
	}
	want := []string{"the clocks of GPU 000F:01:00 are lowered: HW Slowdown", "the clocks of GPU 000F:01:00 are lowered: HW Thermal Slowdown",
		"memory of GPU 000F:01:00 has 2 uncorrectable errors since the driver was loaded: DRAM Uncorrectable", "the driver asks of GPU 0000:9B:00: Reset", "memory of GPU 0000:9B:00 has rows to remap: reset it"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
