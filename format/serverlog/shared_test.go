package serverlog

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// A found is what a log reports about a metric, over all places.
type found struct {
	n         int
	sum, most float64
}

// readText reads a log and sums up its contents.
func readText(t *testing.T, name string, content io.Reader) (*series.Set, *spantable.RequestRecords, map[series.MetricID]found) {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	opt := &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}
	if _, err := index(&format.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(content), nil }}, opt); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	all := map[series.MetricID]found{}
	for i, s := range set.List {
		f := all[s.Metric]
		for x := range set.Each(i) {
			f.n, f.sum, f.most = f.n+1, f.sum+x.Value, max(f.most, x.Value)
		}
		all[s.Metric] = f
	}
	return set, opt.Records, all
}

// Real logs give the values that people counted in them.
func TestSharedLogs(t *testing.T) {
	dir := testinput.Shared(t, "data", "untraced")
	for _, test := range []struct {
		file    string
		metric  series.MetricID
		n       int     // 0 is not checked
		sum     float64 // likewise
		most    float64
		instant string // text of one event
	}{
		{"sgl01_pd_q480_decode.log", series.Running, 804, 0, 96, "is ready"},
		{"sgl01_pd_q480_decode.log", series.Receiving, 804, 0, 102, ""},
		{"sgl01_pd_q480_decode.log", series.PreallocatedUsage, 804, 0, 49, ""},
		{"sgl01_pd_q480_decode.log", series.KVUsage, 804, 0, 65, ""},
		{"sgl01_pd_q480_decode.log", series.Queued, 804, 0, 9, ""},
		{"sgl02_pd_q480_prefill.log", series.NewTokens, 580, 11756160, 0, ""},
		{"sgl02_pd_q480_prefill.log", series.Queued, 580, 0, 116, ""},
		{"sgl02_pd_q480_prefill.log", series.Bootstrapping, 580, 0, 87, ""},
		{"sgl02_pd_q480_prefill.log", series.Sending, 580, 0, 9, ""},
		{"sgl02_pd_q480_prefill.log", series.KVUsage, 580, 0, 42, ""},
		{"sgl03_npu_oom.log", series.Generation, 72, 0, 0, "the device ran out of memory"},
		{"sgl03_npu_oom.log", series.NewTokens, 13, 0, 0, ""},
		{"sgl04_rdna4_q35.log", series.Generation, 80, 0, 6.16, ""},
		{"sgl04_rdna4_q35.log", series.NewTokens, 8, 0, 0, ""},
		{"sgl05_gb300_lora_bs64.log", series.NewTokens, 48, 196608, 0, ""},
		{"sgl05_gb300_lora_bs64.log", series.Generation, 51, 0, 8892, ""},
		{"sgl05_gb300_lora_bs64.log", series.Queued, 99, 0, 60, ""},
		{"sgl06_gloo_paste.txt", series.Running, 0, 0, 0, "Address family not supported by protocol"},
		{"sgl07_480b_startfail.log", series.NewTokens, 6, 0, 0, "Scheduler: "},
		{"sgl08_llama3b.log", series.NewTokens, 5, 50324, 0, ""},
		{"sgl08_llama3b.log", series.CachedTokens, 5, 50335, 0, ""},
		{"sgl08_llama3b.log", series.KVUsage, 5, 0, 100, ""},
		{"vllm01_0251_spec.log", series.Generation, 39, 0, 0, ""},
		{"vllm01_0251_spec.log", series.AcceptLength, 38, 0, 0, ""},
		{"vllm02_085.log", series.Generation, 10, 0, 0, ""},
		{"vllm02_085.log", series.HitRate, 10, 0, 75, ""},
	} {
		t.Run(fmt.Sprint(test.file, " ", series.Metrics[test.metric].Name), func(t *testing.T) {
			content := bytes.NewReader(testinput.ReadZstd(t, filepath.Join(dir, test.file+".zst")))
			set, _, all := readText(t, test.file, content)
			f := all[test.metric]
			if f.n != test.n || test.sum != 0 && f.sum != test.sum || test.most != 0 && (f.most < test.most-0.5 || f.most > test.most+0.6) {
				t.Errorf("%+v, want %+v", f, test)
			}
			said := test.instant == ""
			for _, x := range set.Instants {
				said = said || strings.Contains(set.Syms.Name(x.Text), test.instant)
			}
			if !said {
				t.Errorf("nothing says %q", test.instant)
			}
			if testing.Verbose() {
				src := set.Sources[0]
				t.Logf("%d lines, %d read, %d other, zone %+v, servers %+v", src.Lines, src.Read, src.Other, src.Zone, set.Servers)
				for _, x := range set.Instants {
					t.Logf("%d %v %s x%d %s %q", x.Time/1e9, set.Places[x.Place].Rank, x.Kind, x.Count, set.Syms.Name(x.Text), set.Syms.Name(x.Stack))
				}
			}
		})
	}
}
