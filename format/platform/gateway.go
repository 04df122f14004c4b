package platform

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// An answerCounter is a counter of responses, with the label that has their status, and the labels that name the responder.
// Without such labels, the responder is the server that was scraped.
type answerCounter struct {
	name, status string
	who          []string
}

var answerCounters = []answerCounter{
	{"smg_http_responses_total", "status_code", nil},
	{"traefik_service_requests_total", "code", []string{"exported_service", "service"}},
	{"nginx_ingress_controller_requests", "status", []string{"exported_service", "service", "ingress"}},
	{"envoy_cluster_upstream_rq_xx", "envoy_response_code_class", []string{"envoy_cluster_name"}},
	{"istio_requests_total", "response_code", []string{"destination_workload", "destination_service_name"}},
	{"haproxy_server_http_responses_total", "code", []string{"server"}},
	{"http_requests_total", "status", nil},
	{"dynamo_frontend_requests_total", "status", nil},
}

// routerGauges show how a gateway treats a server: the value at which the server gets no requests, and the reason.
var routerGauges = []struct {
	name string
	out  float64
	says string
	back string
}{
	{"smg_worker_health", 0, series.OutOfRouter + "it is unhealthy", "is healthy again for the router"},
	{"sgl_router_worker_health", 0, series.OutOfRouter + "it is unhealthy", "is healthy again for the router"},
	{"smg_worker_cb_state", 1, series.OutOfRouter + "its circuit breaker opened", "gets requests of the router again: its circuit breaker closed"},
	{"sgl_router_cb_state", 1, series.OutOfRouter + "its circuit breaker opened", "gets requests of the router again: its circuit breaker closed"},
}

// A watched is a series with a meaning beyond its values.
type watched struct {
	gauge   int       // index in routerGauges
	worker  string    // address of the server in question
	is      status    // of responses
	answers *answered // nil for a gauge
	last    float64
	seen    bool
	out     bool // the server gets no requests
}

// A status is the kind of a response.
type status uint8

const (
	fine status = iota
	serverError
	tooMany
)

// answered are the responses counted by one counter: the number of all, and the times of the bad ones.
type answered struct {
	counter string
	by      series.Server
	all     float64
	bad     [tooMany + 1][]point
}

// statusOf returns the kind of a status: a code, or its first digit. Dynamo uses words.
func statusOf(text string) status {
	switch {
	case text == "429":
		return tooMany
	case text == "error", text == "5", len(text) == 3 && text[0] == '5':
		return serverError
	}
	return fine
}

// watch watches a series if it has a meaning beyond its values.
func (d *reader) watch(id int32, name string, labels map[string]string) {
	if worker := cmp.Or(labels["worker"], labels["worker_url"]); worker != "" {
		for i := range routerGauges {
			if routerGauges[i].name == name {
				d.watched[id] = &watched{gauge: i, worker: worker}
			}
		}
	}
	i := slices.IndexFunc(answerCounters, func(c answerCounter) bool { return c.name == name && labels[c.status] != "" })
	if i < 0 || labels["reporter"] == "destination" { // requests that did not reach the destination are only known to the source
		return
	}
	c := &answerCounters[i]
	who := ""
	for _, key := range c.who {
		who = cmp.Or(who, labels[key])
	}
	who = cmp.Or(who, labelOf(labels), d.speaker, d.byFile)
	key := name + " " + who
	a := d.answers[key]
	if a == nil {
		a = &answered{counter: name, by: series.Server{Host: hostOf(labels), Name: who}}
		d.answers[key] = a
	}
	d.watched[id] = &watched{answers: a, is: statusOf(labels[c.status])}
}

// addressed returns the place of the server at the address in a URL.
func (d *reader) addressed(url string) int32 {
	_, address, ok := strings.Cut(url, "://")
	if !ok {
		address = url
	}
	address = strings.TrimRight(address, "/")
	host, _, _ := strings.Cut(address, ":")
	server := d.Server(series.Server{Host: host, Name: address})
	d.Listens(server, address)
	return d.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: series.NoGPU})
}

// saw handles a value of a watched series; values come in order of time.
func (d *reader) saw(w *watched, at trace.Time, value float64) {
	if a := w.answers; a != nil {
		more := value - w.last
		if more < 0 { // the counter was reset
			more = value
		}
		if w.seen && more > 0 {
			if a.all += more; w.is != fine {
				a.bad[w.is] = append(a.bad[w.is], point{at, more})
			}
		}
		w.last, w.seen = value, true
		return
	}
	g := &routerGauges[w.gauge]
	switch out := value == g.out; {
	case out && !w.out:
		d.Instant(series.Instant{Time: at, Kind: series.Unrouted, Place: d.addressed(w.worker)}, g.says)
		w.out = true
	case value == 1-g.out && w.out: // and not half open
		d.Instant(series.Instant{Time: at, Kind: series.Routed, Place: d.addressed(w.worker)}, g.back)
		w.out = false
	}
}

// told adds the bad responses, unless they are very few: some are normal.
func (d *reader) told() {
	const oneIn = 1000
	for _, key := range slices.Sorted(maps.Keys(d.answers)) {
		a, bad := d.answers[key], 0.0
		for _, list := range a.bad {
			for _, p := range list {
				bad += p.value
			}
		}
		if bad < 2 || bad*oneIn < a.all {
			continue
		}
		place := d.Place(series.Place{Server: d.Server(a.by), Rank: trace.NoRank, GPU: series.NoGPU})
		for is, metric := range [...]series.MetricID{serverError: series.ServerErrors, tooMany: series.Refused} {
			for _, p := range a.bad[is] {
				d.Add(d.SeriesOf(series.Series{Metric: metric, Place: place, Label: d.Set.Syms.Intern(a.counter)}), p.at, p.value)
			}
		}
	}
}
