package platform

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// Prometheus is metrics in Prometheus's formats: the response of its API to query_range, the
// text of /metrics, and OpenMetrics, as dumped by promtool. Exports of VictoriaMetrics, remote read, and
// Grafana are read, too.
//
// # What is odd
//
//   - Times of the API and of OpenMetrics are seconds with a fraction, those of the older text
//     milliseconds. Text that was saved from /metrics has none: its values get the time at which the
//     file was written, or that of the last line before them with a time, as a loop of date and curl writes them.
//   - Text copied from a terminal begins with the command, and may contain curl's meter. In an issue, each line may begin with "> ".
//   - Such text does not name its server: each file counts as one. Files in a folder whose names differ only in a time are
//     from one server, and so are those of one process, whose _created are equal, or that are named before and after and continue the counts.
//   - Labels that name servers are missing if a query aggregated values: shares of more than 100 % are left out.
//   - Grafana's CSV has times in the browser's zone, and the newest line first or last; for Excel, "sep=," is the first line. The metric of a
//     column named by a legend is found by the words of dashboards in the legend or the panel's title; shares may be in
//     percent, and values as the panel shows them: "1.25 K". For any other legend, and for queries whose functions drop the name, we only report how
//     values change.
//   - vLLM's names begin with "vllm:", with "vllm_" if a store allows no colon, and with "ray_vllm_" from Ray, whose WorkerId or
//     ReplicaId distinguishes servers; llama.cpp's begin with "llamacpp:".
//   - SGLang's names begin with "sglang:", and with "sglang_" from /v1/loads and from gateways. In
//     2024-11 they were others, with a label "name" for the model, and the hit rate was in percent.
//   - Shares are 0 to 1 in the metrics of SGLang, vLLM, LMDeploy, and TensorRT-LLM (trtllm-serve with return_perf_metrics,
//     from /prometheus/metrics), whose names begin with "trtllm_", and those of TGI with "tgi_".
//   - Counters of responses by status, or of failed requests, show errors, which we report if they are at least one in a thousand: those of smg, Traefik,
//     ingress-nginx, Envoy, Istio, HAProxy, Kong, APISIX, Knative, servers (http_requests_total), Dynamo, vLLM, TensorRT-LLM, LMDeploy, TGI, TEI, Triton, Ray Serve,
//     llm-d, and LiteLLM. A single scrape has them since the process began.
//   - Gauges show since when a server gets no requests: smg_worker_health is 0, or smg_worker_cb_state 1 (2 is half open), and those of sgl-router, LiteLLM,
//     HAProxy, Ray Serve, and llm-d.
//   - Gauges of kube-state-metrics show how containers last ended, what they wait for, and which nodes are not ready, like the status of a pod.
//   - SGLang sets its hit rate to 0 with each decode batch: a rate of 0 is meaningless.
//   - DCGM_FI_DEV_XID_ERRORS keeps the last code until the driver is reloaded: its change is
//     the event, and an initial code is not.
//   - Values are text in the API: "NaN", "+Inf".
var Prometheus = &format.Format{
	Name:      "Prometheus",
	Noun:      "metrics file",
	Doc:       "metrics of servers, GPUs and hosts: answers of Prometheus to query_range, OpenMetrics, what /metrics prints, and exports of VictoriaMetrics and Grafana",
	For:       "'sgtrace report'",
	Sniff:     func(head []byte) bool { return isRange(head) || isText(head) || exportOf(head) != nil },
	Index:     indexPrometheus,
	Series:    true,
	Momentary: true,
	Text:      true,
}

// isRange reports whether a file is a response of the API.
func isRange(head []byte) bool {
	return bytes.Contains(head, []byte(`"resultType"`)) && bytes.Contains(head, []byte(`"result"`)) && (bytes.Contains(head, []byte(`"matrix"`)) || bytes.Contains(head, []byte(`"vector"`)))
}

// sampleLine matches a sample at the beginning of a file without comments.
var sampleLine = lazyregexp.New(`^(?:\{__name__="|sglang[:_]|vllm:|DCGM_FI_|dynamo_|node_)[A-Za-z0-9_:]*(?:(?:\{|", )[^\n]*\})? (?:[-+0-9.eENaInf]+(?: [0-9.]+)?|=>.*)\r?\n`)

func isText(head []byte) bool {
	const few = 6 // lines before the first scrape, with its time or command
	for range few {
		head = bytes.TrimPrefix(head, quoted)
		if bytes.HasPrefix(head, []byte("# HELP ")) || bytes.HasPrefix(head, []byte("# TYPE ")) || sampleLine.Match(head) {
			return true
		}
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && !asks(line) {
			if _, _, ok := dateOf(line); !ok {
				return false
			}
		}
		head = rest
	}
	return false
}

// asks reports whether a line copied from a terminal is the command that fetched the metrics, or its progress.
func asks(line []byte) bool {
	return bytes.Contains(line, []byte("curl ")) || bytes.Contains(line, []byte("/metrics")) || progress.Match(line)
}

// progress matches curl's progress meter: its header, and its numbers with the remaining time, which is unknown at the end.
var progress = lazyregexp.New(`^% Total +% Received|^Dload +Upload|^\d+ +[\d.]+[kMG]? +\d+ .*--:--:--`)

func indexPrometheus(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(4 << 10)
	encoding := "Prometheus text"
	other := exportOf(head)
	switch {
	case isRange(head):
		encoding = "Prometheus range"
	case other != nil:
		encoding = other.encoding
	}
	stopped := int64(-1)
	d := newReader(opt.Series.Fill(in.Name, encoding), in.Name, opt.Diags)
	switch {
	case isRange(head):
		stopped, err = d.readRange(b)
	case other != nil:
		err = other.read(d, b)
	default:
		if d.speaker = pathOfSpeaker(in.Name); d.speaker == "" {
			d.byFile = strings.TrimSuffix(filepath.ToSlash(in.Name), filepath.Ext(in.Name))
		}
		err = d.readText(b, func() trace.Time { return written(in.Path) })
	}
	if len(d.known) == 0 { // else they are irrelevant
		d.panels(d.unnamed)
	}
	d.told()
	if errors.Is(err, errUntimed) {
		return nil, errors.Join(err, r.Close())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		opt.Diags.Add(trace.InputDamaged.At(trace.Pos{File: in.Name, Offset: stopped}, err))
	}
	return &format.Source{}, r.Close()
}

// written returns the time at which a file was written; 0 is unknown.
func written(path string) trace.Time {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return trace.Time(info.ModTime().UnixNano())
}
