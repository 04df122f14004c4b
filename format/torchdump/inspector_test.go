package torchdump

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

func readInspectorText(text string) ([]*profile.Profile, *format.Options, error) {
	syms := trace.NewSymbols()
	opt := &format.Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}, Flight: recorder.NewInFlight(syms)}
	in := &format.Input{Name: "node0-pid4100.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	src, err := Inspector.Index(in, opt)
	if err != nil {
		return nil, opt, err
	}
	return src.Profiles, opt, nil
}

// collectives lists the collectives of a profile, one per line.
func collectives(p *profile.Profile, opt *format.Options) (list []string) {
	name := opt.Syms.Name
	for i := range p.Collectives.Len() {
		c := p.Collectives.At(i)
		list = append(list, fmt.Sprint(name(c.Op), " #", c.Seq, " ", c.In, "->", c.Out, " ", name(c.Dtype), " of ", c.GroupSize, " in ", name(c.Group), " ", int64(c.Time)/1000, "+", c.Dur/1000, " ", c.OnGPU, " ", c.CommsID != 0))
	}
	return list
}

const meta = `"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1752867229276385,"hostname":"n1","pid":438776}`

// The layouts are from the sources of NCCL 2.28.3 and 2.30: keys, order, and an unused channel.
func TestLayouts(t *testing.T) {
	const header, newer = `{"header":{"id":"0xe62dedaa97644a","rank":4,"n_ranks":8,"nnodes":1},`, `{"header":{"id":"0xe62dedaa97644a","comm_name":"DP Group 0","rank":4,"n_ranks":8,"nnodes":1},`
	for _, c := range []struct{ line, want string }{
		{header + meta + `,"coll_perf":{"coll":"ReduceScatter","coll_sn":1231,"coll_msg_size_bytes":2147483648,"coll_exec_time_us":41057,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":418.439467,"coll_busbw_gbs":366.134533,` +
			`"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":48,"kernel_record_sn":47}]},` +
			`"event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[{"channel_id":0,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811,"kernel_record_ts":1752867229275811},` +
			`{"channel_id":1,"kernel_start_ts":0,"kernel_stop_ts":0,"kernel_record_ts":0}]}}}`,
			"ReduceScatter #1231 17179869184->2147483648 bytes of 8 in NCCL 0xe62dedaa97644a 1752867229234754+41057 true true"},
		{header + meta + `,"coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,"coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}`,
			"AllReduce #1407 17179869184->17179869184 bytes of 8 in NCCL 0xe62dedaa97644a 1752867229214411+61974 true true"},
		{newer + meta + `,"coll_perf":{"coll":"AllGather","coll_sn":0,"coll_msg_size_bytes":8192,"coll_exec_time_us":9,"coll_timing_source":"collective_cpu","coll_algobw_gbs":"nan","coll_busbw_gbs":"nan"}}`,
			"AllGather #0 8192->65536 bytes of 8 in NCCL 0xe62dedaa97644a 1752867229276376+9 false true"},
		{newer + meta + `,"p2p_perf":{"p2p":"Send","p2p_sn":3,"p2p_peer":5,"p2p_msg_size_bytes":1048576,"p2p_exec_time_us":40,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":26.214400,"p2p_busbw_gbs":26.214400}}`,
			"Send #3 1048576->1048576 bytes of 8 in NCCL 0xe62dedaa97644a 1752867229276345+40 true false"},
	} {
		if !isInspector([]byte(c.line)) {
			t.Errorf("not recognized: %s", c.line)
		}
		profiles, opt, err := readInspectorText(c.line + "\n")
		if err != nil || len(profiles) != 1 || opt.Diags.Worst() >= trace.DataLoss {
			t.Fatal(len(profiles), err, opt.Diags.All())
		}
		p := profiles[0]
		if got := strings.Join(collectives(p, opt), "; "); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if p.Meta.Host != "n1" || p.Meta.PID != 438776 || len(p.Meta.Hints) != 1 || p.Meta.Hints[0] != (naming.Hint{From: "NCCL", Rank: 4, Size: 8}) {
			t.Errorf("%+v", p.Meta)
		}
		if d := opt.Flight.Dumps; len(d) != 1 || d[0].Rank != 4 || d[0].By != recorder.Inspector || len(d[0].Ops) != 1 || !opt.Flight.Empty() {
			t.Errorf("%+v", d)
		}
	}
}

// Collectives without times are placed between the writes of the log, one after another, and their
// error is within Blur.
func TestPlacesWithoutTimes(t *testing.T) {
	for _, interval := range []int64{500, 100_000, 0} {
		dir := t.TempDir()
		truth, err := torch.WriteInspector(dir, torch.InspectorConfig{Seed: 1, Ranks: 2, Hosts: 1, Collectives: 2000, Late: -1, Interval: interval})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "node0-pid4101.log"))
		if err != nil {
			t.Fatal(err)
		}
		profiles, opt, err := readInspectorText(string(text))
		if err != nil {
			t.Fatal(err)
		}
		p := profiles[0]
		if undated := p.Meta.Blur == 1<<63-1; undated != (interval == 0) || p.Meta.Blur == 0 {
			t.Errorf("every %d us: blur %d", interval, p.Meta.Blur)
		}
		for i, end := range truth.Ends {
			off := int64(p.Collectives.End(i)) - 1000*end
			if interval > 0 && i > int(interval/500) && (off > p.Meta.Blur || off < -p.Meta.Blur) || p.Collectives.Dur(i) != 1000*truth.Took[i][1] {
				t.Fatalf("every %d us: collective %d is off by %d ns of %d", interval, i, off, p.Meta.Blur)
			}
			if i > 0 && p.Collectives.End(i-1) > p.Collectives.Start(i) {
				t.Fatalf("every %d us: collectives %d and %d overlap", interval, i-1, i)
			}
		}
		if said := fmt.Sprint(opt.Diags.All()); !strings.Contains(said, "not when") {
			t.Error(said)
		}
	}
}

// A process with several devices is several ranks.
func TestSeveralDevices(t *testing.T) {
	line := func(rank int) string {
		return fmt.Sprintf(`{"header":{"id":"0x1","rank":%d,"n_ranks":2,"nnodes":1},`, rank) + meta + `,"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":8192,"coll_exec_time_us":9}}` + "\n"
	}
	profiles, _, err := readInspectorText(line(0) + line(1))
	if err != nil || len(profiles) != 2 || profiles[0].Collectives.CommsID(0) != profiles[1].Collectives.CommsID(0) {
		t.Fatal(len(profiles), err)
	}
}

// Damaged logs are read up to the damage, and unreadable parts are counted.
func TestInspectorMutants(t *testing.T) {
	dir := t.TempDir()
	if _, err := torch.WriteInspector(dir, torch.InspectorConfig{Seed: 1, Ranks: 1, Hosts: 1, Collectives: 40, Late: -1, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "node0-pid4100.log"))
	if err != nil {
		t.Fatal(err)
	}
	s := testinput.Subject{Data: whole, Other: []byte(strings.Repeat(`{"header":{"id":"0x2","rank":-7,"n_ranks":99999999999,"nnodes":1},"metadata":[],"coll_perf":{"coll_exec_time_us":1e30}}`+"\n", 20))}
	for i, b := range whole {
		if b == '\n' {
			s.Cuts = append(s.Cuts, i+1)
		}
	}
	for i, b := range s.Other {
		if b == '\n' {
			s.OtherCuts = append(s.OtherCuts, i+1)
		}
	}
	for seed := range testinput.Seeds(150) {
		m := s.Mutate(seed)
		profiles, opt, err := readInspectorText(string(m.Data))
		n := 0
		for _, p := range profiles {
			n += p.Collectives.Len()
		}
		lines := 0
		for line := range strings.Lines(string(m.Data)) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if err == nil && n < lines && opt.Diags.Worst() < trace.DataLoss {
			t.Errorf("%s: %d collectives of %d lines, and nothing is said", m.Name, n, lines)
		}
	}
}

// Fields of a record other than measurements are never kept.
func TestCanaries(t *testing.T) {
	const canary = "the secret recipe, sk-abcdefghijklmnopqrstuvwx"
	text := `{"header":{"id":"0x1","rank":0,"n_ranks":2,"nnodes":1,"note":"` + canary + `"},"prompt":"` + canary + `",` + strings.Replace(meta, `"git_rev":""`, `"git_rev":"`+canary+`"`, 1) +
		`,"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":8192,"coll_exec_time_us":9,"args":{"text":"` + canary + `"},"coll_timing_source":"` + canary + `"}}` + "\n"
	profiles, opt, err := readInspectorText(text)
	if err != nil || len(profiles) != 1 {
		t.Fatal(err)
	}
	for i := range opt.Syms.Len() {
		if strings.Contains(opt.Syms.Name(trace.Sym(i)), "recipe") {
			t.Error(opt.Syms.Name(trace.Sym(i)))
		}
	}
}

// BenchmarkInspector reads records with times.
func BenchmarkInspector(b *testing.B) {
	dir := b.TempDir()
	if _, err := torch.WriteInspector(dir, torch.InspectorConfig{Seed: 1, Ranks: 1, Hosts: 1, Collectives: 20000, Late: -1, Verbose: true}); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node0-pid4100.log"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, err := readInspectorText(string(text)); err != nil {
			b.Fatal(err)
		}
	}
}
