package cluster

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// scrapeEvery is Prometheus's scrape interval.
const scrapeEvery = 15 * second

// An Encoding is the format of a file with metrics.
type Encoding uint8

const (
	Range       Encoding = iota // a response of Prometheus to query_range
	OpenMetrics                 // as promtool dumps it, times in seconds
	OldText                     // with times in ms
	Encodings                   // number of encodings
)

// A meter records what each server did.
type meter struct {
	*Run
	halves [][]*Half
	work   [][]piece // when it had something to compute, in order
}

type piece struct{ from, to int64 }

// A scraped is a series of metrics.
type scraped struct {
	name   string
	labels [][2]string
	values []scrape
}

type scrape struct {
	at    int64
	value float64
}

// writeMetrics writes Prometheus's metrics of all servers and, from DCGM, of all GPUs. With pods, they have the pod that
// uses a GPU, as in Kubernetes.
func writeMetrics(w io.Writer, r *Run, e Encoding, pods bool) error {
	var list []scraped
	m := &meter{Run: r, halves: make([][]*Half, len(r.Servers)), work: make([][]piece, len(r.Servers))}
	for _, q := range r.Requests {
		for _, h := range q.Halves {
			m.halves[h.Server] = append(m.halves[h.Server], h)
		}
	}
	for i := range r.Servers {
		m.work[i] = m.worked(i)
		list = append(list, m.scrapeServer(i)...)
	}
	list = append(list, m.scrapeGPUs(pods)...)
	list = append(list, m.scrapeHosts()...)
	slices.SortStableFunc(list, func(a, b scraped) int { return strings.Compare(a.name, b.name) })
	switch e {
	case Range:
		return writeRange(w, list)
	case OpenMetrics:
		return writeText(w, list, func(at int64) string { return fmt.Sprintf("%d.%03d", at/second, at%second/ms) }, "# EOF\n")
	}
	return writeText(w, list, func(at int64) string { return fmt.Sprint(at / ms) }, "")
}

func writeRange(w io.Writer, list []scraped) error {
	var b strings.Builder
	b.WriteString(`{"status":"success","data":{"resultType":"matrix","result":[`)
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"metric":{"__name__":%q`, s.name)
		for _, l := range s.labels {
			fmt.Fprintf(&b, `,%q:%q`, l[0], l[1])
		}
		b.WriteString(`},"values":[`)
		for k, x := range s.values {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `[%d.%03d,"%v"]`, x.at/second, x.at%second/ms, x.value)
		}
		b.WriteString("]}")
	}
	b.WriteString("]}}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeText(w io.Writer, list []scraped, stamp func(int64) string, end string) error {
	var b strings.Builder
	last := ""
	for _, s := range list {
		family := strings.TrimSuffix(s.name, "_bucket")
		if family != last {
			kind := "gauge"
			switch {
			case family != s.name:
				kind = "histogram"
			case strings.HasSuffix(s.name, "_total"):
				kind = "counter"
			}
			fmt.Fprintf(&b, "# TYPE %s %s\n", family, kind)
			last = family
		}
		var labels []string
		for _, l := range s.labels {
			labels = append(labels, fmt.Sprintf("%s=%q", l[0], l[1]))
		}
		for _, x := range s.values {
			fmt.Fprintf(&b, "%s{%s} %v %s\n", s.name, strings.Join(labels, ","), x.value, stamp(x.at))
		}
	}
	b.WriteString(end)
	_, err := io.WriteString(w, b.String())
	return err
}

// scrapes returns the times of the scrapes of a target.
func (r *Run) scrapes(number int) (list []int64) {
	rng := r.Config.stream(streamScrapes, number)
	for at := r.Start + rng.Int64N(scrapeEvery); at < r.End; at += scrapeEvery {
		list = append(list, at)
	}
	return list
}

// A gauge is a value that a scheduler exports about its last batch.
type gauge struct {
	name string
	role Role // "" is all
	of   func(b *Batch, most int) float64
}

var gauges = []gauge{
	{"num_running_reqs", "", func(b *Batch, _ int) float64 { return float64(b.Running) }},
	{"num_queue_reqs", "", func(b *Batch, _ int) float64 { return float64(b.Queued) }},
	{"num_used_tokens", "", func(b *Batch, _ int) float64 { return float64(b.KV) }},
	{"token_usage", "", func(b *Batch, most int) float64 { return math.Round(100*float64(b.KV)/float64(most)) / 100 }},
	{"num_prefill_bootstrap_queue_reqs", Prefill, func(b *Batch, _ int) float64 { return float64(b.Bootstrapping) }},
	{"num_prefill_inflight_queue_reqs", Prefill, func(b *Batch, _ int) float64 { return float64(b.Sending) }},
	{"num_decode_prealloc_queue_reqs", Decode, func(b *Batch, _ int) float64 { return float64(b.Preallocating) }},
	{"num_decode_transfer_queue_reqs", Decode, func(b *Batch, _ int) float64 { return float64(b.Coming) }},
	{"num_retracted_reqs", "", func(b *Batch, _ int) float64 { return float64(b.Retracted) }},
}

// scrapeServer returns the metrics of a scheduler: gauges keep the values of the last line of its log, until it is known to
// be idle.
func (r *meter) scrapeServer(i int) (list []scraped) {
	const idle = 30 * second
	s := &r.Servers[i]
	pool := &r.Config.Pools[s.Pool]
	kind := cmp.Or(string(s.Role), "unified")
	labels := [][2]string{{"model_name", pool.Model}, {"engine_type", kind}, {"tp_rank", fmt.Sprint(max(0, s.DP) * pool.TP)}, {"pp_rank", "0"}, {"moe_ep_rank", "0"},
		{"instance", r.Hosts[s.Host].Address + ":30000"}, {"job", "sglang"}, {"namespace", "serving"}, {"pod", r.pod(i)}}
	if s.DP >= 0 {
		labels = append(labels, [2]string{"dp_rank", fmt.Sprint(s.DP)})
	}
	at := r.scrapes(1000 + s.Host)
	at = slices.DeleteFunc(at, func(t int64) bool {
		return !slices.ContainsFunc(s.Lives, func(l Life) bool { return l.From <= t && (l.To == 0 || t < l.To) })
	})
	for _, g := range gauges {
		if g.role != Unified && g.role != s.Role {
			continue
		}
		x := scraped{name: "sglang:" + g.name, labels: labels}
		k := 0
		for _, t := range at {
			for k < len(s.Batches) && s.Batches[k].At <= t {
				k++
			}
			v := 0.0
			if k > 0 && t-s.Batches[k-1].At < idle {
				v = g.of(&s.Batches[k-1], pool.KV)
			}
			x.values = append(x.values, scrape{t, v})
		}
		list = append(list, x)
	}
	rate := scraped{name: "sglang:gen_throughput", labels: labels}
	k, v, when := 0, 0.0, int64(0)
	for _, t := range at {
		for ; k < len(s.Batches) && s.Batches[k].At <= t; k++ {
			if b := &s.Batches[k]; !b.Prefill && b.At > b.Since {
				v, when = float64(b.Given)/(float64(b.At-b.Since)/1e9), b.At
			}
		}
		if t-when >= idle {
			v = 0
		}
		rate.values = append(rate.values, scrape{t, v})
	}
	return append(append(list, rate), r.histogram(i, labels, at)...)
}

// histogram returns the durations of the requests that a server answered.
func (r *meter) histogram(server int, labels [][2]string, at []int64) (list []scraped) {
	for _, most := range []float64{0.2, 0.5, 1, 2, 5, 10, 20, 50, math.Inf(1)} {
		x := scraped{name: "sglang:e2e_request_latency_seconds_bucket", labels: append(slices.Clone(labels), [2]string{"le", fmt.Sprint(most)})}
		for _, t := range at {
			n := 0
			for _, h := range r.halves[server] {
				if h.Finish != "" && h.End <= t && float64(h.End-h.Received)/1e9 <= most {
					n++
				}
			}
			x.values = append(x.values, scrape{t, float64(n)})
		}
		list = append(list, x)
	}
	return list
}

// Clocks of an H200 in MHz, and DCGM's reason for the low clock of an idle GPU.
const (
	fastest  = 1980
	resting  = 345
	stepSize = 15
	idleBit  = 1
)

// scrapeGPUs returns the metrics of all GPUs of the machines.
func (r *meter) scrapeGPUs(pods bool) (list []scraped) {
	for node := range r.nodes() {
		at := r.scrapes(node)
		for gpu := range gpusOfNode {
			list = append(list, r.scrapeGPU(node, gpu, at, pods)...)
		}
	}
	return list
}

// A hostCounter is a counter of node exporter, with its rate per second on a healthy host. The actual rate varies by up to
// a half, unless it is 0.
type hostCounter struct {
	name   string
	labels [][2]string
	begin  float64
	rate   float64
}

// hostCounters are those of a healthy machine, which was busy for about a tenth of the time before the run, with a few
// mishaps.
var hostCounters = []hostCounter{
	{"node_schedstat_running_seconds_total", [][2]string{{"cpu", "0"}}, 81_000, 0.6},
	{"node_schedstat_running_seconds_total", [][2]string{{"cpu", "1"}}, 79_000, 0.5},
	{"node_schedstat_waiting_seconds_total", [][2]string{{"cpu", "0"}}, 2_100, 0.02},
	{"node_schedstat_waiting_seconds_total", [][2]string{{"cpu", "1"}}, 1_900, 0.03},
	{"node_cpu_seconds_total", [][2]string{{"cpu", "0"}, {"mode", "idle"}}, 900_000, 0.4},
	{"node_cpu_seconds_total", [][2]string{{"cpu", "0"}, {"mode", "user"}}, 80_000, 0.5},
	{"node_cpu_seconds_total", [][2]string{{"cpu", "0"}, {"mode", "steal"}}, 12, 0.002},
	{"node_pressure_memory_stalled_seconds_total", nil, 3, 0.001},
	{"node_pressure_io_stalled_seconds_total", nil, 400, 0.02},
	{"node_netstat_Tcp_OutSegs", nil, 9e9, 40_000},
	{"node_netstat_Tcp_RetransSegs", nil, 1e6, 12},
	{"node_vmstat_oom_kill", nil, 2, 0},
	{"node_infiniband_link_downed_total", [][2]string{{"device", "mlx5_0"}, {"port", "1"}}, 3, 0},
}

// scrapeHosts returns the metrics of all machines, which are all healthy.
func (r *meter) scrapeHosts() (list []scraped) {
	for node := range r.nodes() {
		rng := r.Config.stream(streamHost, node)
		at := r.scrapes(2000 + node)
		for _, c := range hostCounters {
			x := scraped{name: c.name, labels: append([][2]string{{"instance", fmt.Sprintf("node%d:9100", node+1)}, {"job", "node"}}, c.labels...)}
			v := c.begin
			for _, t := range at {
				v += c.rate * (0.5 + rng.Float64()) * float64(scrapeEvery) / float64(second)
				x.values = append(x.values, scrape{t, v})
			}
			list = append(list, x)
		}
	}
	return list
}

// nodes returns the number of machines: the last server is on the last one.
func (r *Run) nodes() int { return r.Servers[len(r.Servers)-1].Node + 1 }

// user returns the server that uses a GPU; -1 if there is none.
func (r *Run) user(node, gpu int) int {
	return slices.IndexFunc(r.Servers, func(s Server) bool {
		return s.Node == node && gpu >= s.GPU && gpu < s.GPU+r.Config.Pools[s.Pool].TP
	})
}

func (r *meter) scrapeGPU(node, gpu int, at []int64, pods bool) []scraped {
	rng := r.Config.stream(streamGPU, node*gpusOfNode+gpu)
	rests := r.Config.Seed%2 == 0 // whether idle GPUs lower their clock: with some drivers they don't while a context exists
	labels := [][2]string{{"gpu", fmt.Sprint(gpu)}, {"UUID", fmt.Sprintf("GPU-%08x-%04x", r.Config.Seed*1000+uint64(node), gpu)}, {"device", fmt.Sprintf("nvidia%d", gpu)},
		{"modelName", "NVIDIA H200"}, {"Hostname", fmt.Sprintf("node%d", node+1)}, {"DCGM_FI_DRIVER_VERSION", "570.86.15"}}
	user := r.user(node, gpu)
	if pods && user >= 0 {
		labels = append(labels, [2]string{"namespace", "serving"}, [2]string{"pod", r.pod(user)}, [2]string{"container", "sglang"})
	}
	names := []string{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS"}
	list := make([]scraped, len(names))
	for k, name := range names {
		list[k] = scraped{name: name, labels: labels}
	}
	for _, t := range at {
		x := r.stateOf(rng, node, gpu, user, t, rests)
		for k, v := range []float64{x.clock, x.util, float64(x.reasons), x.heat, x.power, float64(x.xid)} {
			list[k].values = append(list[k].values, scrape{t, v})
		}
		if x.lost {
			break
		}
	}
	return list
}

// A state is the state of a GPU in DCGM at some time.
type state struct {
	clock, util, heat, power float64
	reasons                  uint64
	xid                      int
	lost                     bool
}

// offBus is the Xid of a GPU that has become unreachable.
const offBus = 79

func (r *meter) stateOf(rng *rand.Rand, node, gpu, user int, t int64, rests bool) state {
	x := state{clock: fastest - stepSize*float64(rng.IntN(3)), heat: 36, power: 75, reasons: idleBit}
	if user >= 0 {
		x.util = math.Round(r.busy(user, t))
	}
	switch {
	case x.util > 0:
		x.heat, x.power, x.reasons = 58+10*rng.Float64(), 380+200*rng.Float64(), 4*uint64(rng.IntN(2))
	case rests:
		x.clock = resting
	}
	if user >= 0 {
		for _, s := range r.Servers[user].Slowed {
			if s.GPU == gpu && s.From <= t && (s.To == 0 || t < s.To) && x.util > 0 {
				x.clock, x.reasons = math.Floor(fastest/s.Factor/stepSize)*stepSize-stepSize*float64(rng.IntN(2)), s.Reason
				x.heat = 88 + 3*rng.Float64()
			}
		}
	}
	for _, e := range r.Xids {
		if e.Node == node && e.GPU == gpu && e.At <= t {
			x.xid, x.lost = e.Code, e.Code == offBus
		}
	}
	return x
}

// busy returns the percentage of the second before a time in which a scheduler had something to compute.
func (r *meter) busy(server int, t int64) float64 {
	done := int64(0)
	k, _ := slices.BinarySearchFunc(r.work[server], t-second, func(p piece, at int64) int { return cmp.Compare(p.to, at) })
	for _, p := range r.work[server][k:] {
		if p.from >= t {
			break
		}
		done += min(t, p.to) - max(t-second, p.from)
	}
	return 100 * float64(done) / float64(second)
}

// worked returns when a scheduler had something to compute, in order and without overlaps.
func (r *meter) worked(server int) (list []piece) {
	var all []piece
	for _, h := range r.halves[server] {
		if to := cmp.Or(h.Ended, r.End); h.Formed != 0 {
			all = append(all, piece{h.Formed, to})
		}
	}
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	for _, p := range all {
		if n := len(list); n > 0 && p.from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, p.to)
			continue
		}
		list = append(list, p)
	}
	return list
}

// writeKernelLog writes the kernel's messages about the GPUs of a machine, as printed by journalctl with Unix time; it is
// empty if nothing went wrong there.
func writeKernelLog(w io.Writer, r *Run, node int) error {
	for _, e := range r.Xids {
		if e.Node != node {
			continue
		}
		_, err := fmt.Fprintf(w, "%s node%d kernel: NVRM: Xid (PCI:0000:%02x:00): %d, pid='<unknown>', name=%s, %s\n",
			time.Unix(0, e.At).UTC().Format("2006-01-02T15:04:05.000000+00:00"), node+1, 0x19+0x10*e.GPU, e.Code, cmp.Or(e.Name, "<unknown>"), e.Text)
		if err != nil {
			return err
		}
	}
	return nil
}
