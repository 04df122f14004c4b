package platform

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format/platform/counted"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A reader reads one file.
type reader struct {
	*series.Filler
	name    string
	speaker string // server of metrics without a label for it; "" is unknown
	byFile  string // name of such a server if nothing else names it; "" if labels are missing because values were aggregated
	diags   *trace.Diags
	summed  bool              // values of several servers seem to have been aggregated
	known   map[string]int32  // series by name and labels, as in the file
	keys    map[int32]string  // the inverse
	times   map[int32]float64 // factors of series
	unnamed []*panelSeries    // results of a query without names
	counted *counted.Watcher

	kube     map[string]*kubeState // what kube-state-metrics says, by object
	kubeKeys []string              // in the order of the file
	kubes    map[int32]kubeSeries
}

// newReader returns a reader of a file, which fills f.
func newReader(f *series.Filler, name string, diags *trace.Diags) *reader {
	return &reader{Filler: f, name: name, diags: diags, known: map[string]int32{}, counted: counted.New(f)}
}

// places are labels for the place of something, not for its kind.
var places = map[string]bool{"__name__": true, "model_name": true, "name": true, "job": true, "instance": true, "namespace": true, "pod": true, "container": true, "endpoint": true,
	"service": true, "gpu": true, "UUID": true, "device": true, "modelName": true, "Hostname": true, "DCGM_FI_DRIVER_VERSION": true, "pci_bus_id": true, "engine_type": true,
	"tp_rank": true, "pp_rank": true, "dp_rank": true, "moe_ep_rank": true, "engine": true, "pid": true, "node": true, "worker_addr": true, "le": true, "exported_pod": true,
	"exported_namespace": true, "exported_container": true, "kubernetes_pod_name": true, "kubernetes_namespace": true, "k8s_pod_name": true, "pod_name": true,
	"exported_instance": true, "service_instance_id": true, "target": true, "hostname": true, "host": true,
	"ReplicaId": true, "WorkerId": true, "NodeAddress": true, "SessionName": true, "Component": true, "Version": true, "deployment": true, "application": true, "replica": true}

// seriesOf returns the series of a name and its labels.
func (d *reader) seriesOf(key, name, kind string, labels map[string]string) (id int32) {
	if id, ok := d.known[key]; ok {
		return id
	}
	name, labels = plainOf(name, labels)
	m := meaningOf(name, kind)
	if m.known && m.metric == series.HitRate && labels["name"] != "" && labels["model_name"] == "" {
		m.times = 1 // in percent, until 2024-12
	}
	s := series.Series{Metric: m.metric, Place: d.place(m.engine, name, labels), Label: d.Set.Syms.Intern(seriesLabel(labels))}
	if !m.known {
		s.Metric = d.Metric(m.named)
	}
	if m.bucket {
		most, err := strconv.ParseFloat(labels["le"], 64)
		if err != nil {
			most = math.Inf(1)
		}
		s.Most = most
	}
	id = d.SeriesOf(s)
	if d.keys == nil {
		d.keys = map[int32]string{}
	}
	if d.keys[id] != "" && d.keys[id] != key { // another model or process: combined, they would go up and down
		s.Label = d.Set.Syms.Intern(strings.TrimPrefix(seriesLabel(labels)+","+speakerLabels(labels), ","))
		id = d.SeriesOf(s)
	}
	d.keys[id] = key
	d.known[key] = id
	if d.times == nil {
		d.times = map[int32]float64{}
	}
	d.times[id] = m.times
	d.watchKube(id, name, labels)
	d.counted.Watch(id, name, labels, series.Server{Host: hostOf(labels), Name: cmp.Or(labelOf(labels), d.speaker, d.byFile)})
	return id
}

// seriesLabel returns the labels that distinguish series of one place: "stage=prefill_forward".
func seriesLabel(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if (!places[k] || k == "device" && labels["gpu"] == "") && labels[k] != "" { // device names a disk, or a network card
			parts = append(parts, k+"="+labels[k])
		}
	}
	return strings.Join(parts, ",")
}

// speakerLabels returns the labels of the source, for series that are otherwise equal.
func speakerLabels(labels map[string]string) string {
	var parts []string
	for _, k := range [...]string{"model_name", "name", "pid", "engine", "job", "service", "endpoint", "container", "namespace", "worker_addr", "device", "pod", "exported_pod"} {
		if labels[k] != "" {
			parts = append(parts, k+"="+labels[k])
		}
	}
	return strings.Join(parts, ",")
}

// speakers are labels that name a server, best first, as set by relabeling, collectors, and gateways. If a label is also
// exported_, the plain one is that of the forwarder: Ray's agent forwards the metrics of all workers of a node.
var speakers = []string{"ReplicaId", "WorkerId", "exported_pod", "pod", "kubernetes_pod_name", "k8s_pod_name", "pod_name", "worker_addr", "exported_instance", "service_instance_id", "instance", "target", "hostname", "host"}

// labelOf returns the name of a server from its labels; "" if there is none.
func labelOf(labels map[string]string) string {
	for _, key := range speakers {
		if labels[key] != "" {
			return labels[key]
		}
	}
	return ""
}

// nameless returns the name of a server without a naming label. A server's own text never has one. In results from a store,
// labels are missing if values of several servers were aggregated, by job, or by model.
func (d *reader) nameless(labels map[string]string) string {
	if d.byFile != "" {
		d.Source().Unnamed = true
		return d.byFile
	}
	if !d.summed {
		d.summed = true
		d.diags.Add(trace.MetricsSummed.Of(d.name))
	}
	return cmp.Or(labels["job"], labels["service"], labels["namespace"])
}

// hostOf returns the host in the labels; "" if there is none.
func hostOf(labels map[string]string) string {
	host, _, _ := strings.Cut(labels["instance"], ":")
	return cmp.Or(labels["Hostname"], labels["node"], host)
}

// place returns the place described by the labels of a metric.
func (d *reader) place(engine, name string, labels map[string]string) int32 {
	number := func(key string) int16 {
		n, err := strconv.ParseInt(labels[key], 10, 16)
		if err != nil || n < 0 {
			return -1
		}
		return int16(n)
	}
	host := hostOf(labels)
	p := series.Place{Rank: trace.NoRank, GPU: series.NoGPU, UUID: labels["UUID"]}
	server := series.Server{Host: host}
	if engine == "" {
		p.GPU = int32(number("gpu"))
		// If Prometheus drops the labels of DCGM's exporter, "pod" is the exporter's own, and so it is for node exporter.
		// cAdvisor measures the pods themselves.
		ofPod := p.GPU >= 0 || strings.HasPrefix(name, "container_")
		if p.User = cmp.Or(labels["exported_pod"], labels["pod"]); !ofPod || strings.Contains(p.User, "exporter") {
			p.User = ""
		}
	} else {
		server.Name, server.Engine = cmp.Or(labelOf(labels), d.speaker), engine
		if server.Name == "" {
			server.Name = d.nameless(labels)
		}
		server.Role = "unified" // unless another input has more information
		if role := labels["engine_type"]; role == "prefill" || role == "decode" {
			server.Role = role
		}
		p.Rank = trace.Rank{DP: number("dp_rank"), PP: number("pp_rank"), TP: number("tp_rank"), EP: number("moe_ep_rank"), Global: trace.NoRank.Global}
		if engine == "vLLM" && p.Rank.DP < 0 {
			p.Rank.DP = number("engine")
		}
	}
	p.Server = d.Server(server)
	if engine != "" && labels["pod"] != "" && labels["instance"] != "" {
		d.Listens(p.Server, labels["instance"])
	}
	return d.Place(p)
}

// told adds what values mean together.
func (d *reader) told() {
	d.counted.Told()
	d.tellKube()
}

// add adds a value.
func (d *reader) add(id int32, at trace.Time, value float64) {
	if value == 0 && d.Set.List[id].Metric == series.HitRate {
		return // SGLang writes 0 with each decode batch, too
	}
	const whole = 100.5 // in percent, with a margin for rounding
	if value *= d.times[id]; value > whole && d.Set.Metric(d.Set.List[id].Metric).Unit == "%" {
		return // the sum of several servers is not a share
	}
	d.counted.Saw(id, at, value)
	d.sawKube(id, at, value)
	d.Add(id, at, value)
}

// seconds parses a time in seconds, digit by digit.
func seconds(text string) (trace.Time, bool) {
	whole, part, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/1_000_000_000-1 {
		return 0, false
	}
	if len(part) > 9 {
		part = part[:9]
	}
	ns := int64(0)
	if part != "" {
		if ns, err = strconv.ParseInt(part+"000000000"[len(part):], 10, 64); err != nil || ns < 0 {
			return 0, false
		}
	}
	return trace.Time(n*1_000_000_000 + ns), true
}
