package series

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

const second = trace.Time(time.Second)

// Two inputs with samples of one place form one series in order of time, with local timestamps
// converted to Unix time.
func TestInputsMakeOneSeries(t *testing.T) {
	s := New(trace.NewSymbols(), &trace.Diags{})
	const at = 1787000000 * second
	fill := func(name string, local bool, times ...trace.Time) {
		f := s.Fill(name, "test")
		f.Within(int64(time.Second))
		f.Source().Zone.Local = local
		p := f.Place(Place{Server: f.Server(Server{Name: "a"}), Rank: trace.NoRank, GPU: NoGPU})
		for _, x := range times {
			f.Add(f.Series(Queued, p), x, float64(x/second%100))
			f.Instant(Instant{Time: x, Kind: Retraction, Place: p}, "full")
		}
	}
	east := trace.Time(-4 * time.Hour)
	fill("local", true, at+east+2*second, at+east, at+east+4*second)
	s.Sources[0].Zone.Beside(at+east+second, at)
	fill("unix", false, at+1*second, at+3*second)
	fill("other", true, at+east+5*second)
	s.Finish(Known{})
	if len(s.List) != 1 || s.N(0) != 6 || s.Sources[0].Zone.Name() != "UTC-4" || s.Sources[2].Zone.By != "the zone of local" {
		t.Fatalf("%d series, %d samples, %+v", len(s.List), s.N(0), s.Sources)
	}
	var times []trace.Time
	for x := range s.Each(0) {
		times = append(times, (x.Time-at)/second)
		if x.Within() != 1e9 {
			t.Errorf("%+v", x)
		}
	}
	if want := []trace.Time{0, 1, 2, 3, 4, 5}; !slices.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
	for i, x := range s.Instants {
		if x.Time != at+trace.Time(i)*second || x.Count != 1 {
			t.Errorf("%d: %+v", i, x)
		}
	}
	if from, to, ok := s.Bounds(); !ok || from != at || to != at+5*second {
		t.Errorf("%d to %d", from, to)
	}
}

// The time zone is that of most Unix times beside timestamps, or else the only one that fits, or unknown.
func TestZones(t *testing.T) {
	const at = 1787000000 * second
	hour := trace.Time(time.Hour)
	for _, test := range []struct {
		what   string
		beside []trace.Time // timestamp minus Unix time
		known  Known
		want   string
		told   int
	}{
		{what: "half hours", beside: []trace.Time{11 * hour / 2, 11*hour/2 + 3*second}, want: "UTC+5:30"},
		{what: "behind", beside: []trace.Time{-7*hour + 90*second}, want: "UTC-7"},
		{what: "no zone", beside: []trace.Time{-7*hour + 7*60*second}, want: "UTC", told: 1},
		{what: "two zones", beside: []trace.Time{hour, 2 * hour}, want: "UTC", told: 1},
		{what: "given", known: Known{Given: time.FixedZone("", -3600), GivenBy: "--tz"}, want: "UTC-1"},
		{what: "only one fits", known: Known{From: at - 2*hour, To: at - 2*hour + second}, want: "UTC+2"},
		{what: "several fit", known: Known{From: at - 2*hour, To: at + 2*hour}, want: "UTC", told: 1},
		{what: "none fits", known: Known{From: at - 100*hour, To: at - 99*hour}, want: "UTC", told: 1},
	} {
		diags := &trace.Diags{}
		s := New(trace.NewSymbols(), diags)
		f := s.Fill("a.log", "test")
		f.Source().Zone.Local = true
		f.Saw(at)
		f.Saw(at + 60*second)
		for _, off := range test.beside {
			f.Source().Zone.Beside(at+off, at)
		}
		s.Finish(test.known)
		if z := &s.Sources[0].Zone; z.Name() != test.want || len(diags.All()) != test.told || z.By == "" {
			t.Errorf("%s: %s by %s, %d messages", test.what, z.Name(), z.By, len(diags.All()))
		}
	}
}

// NaN is not kept as a sample, and metrics with the same name are one metric.
func TestMetricsOfProducers(t *testing.T) {
	s := New(trace.NewSymbols(), &trace.Diags{})
	f := s.Fill("m", "test")
	id := f.Metric(Metric{Name: "x:y", Kind: Counter})
	if again := f.Metric(Metric{Name: "x:y"}); again != id || s.Metric(id).Kind != Counter || s.Metric(Queued).Name != "queued" {
		t.Errorf("%d and %d", id, again)
	}
	f.Add(f.SeriesOf(Series{Metric: id, Place: f.Place(Place{Server: f.Server(Server{Host: "node1"})}), Most: math.Inf(1)}), second, math.NaN())
	if s.Finish(Known{}); s.Len() != 0 || s.N(0) != 0 {
		t.Error("a value that is no number is a sample")
	}
}

// A server is recognized across inputs: in its log, its metrics, a router that names it by address or by
// cluster name, and an orchestrator that knows its host. A name that matches no server stays separate.
func TestOthersSpeakOfServers(t *testing.T) {
	s := New(trace.NewSymbols(), &trace.Diags{})
	const at = 1787000000 * second
	say := func(file, encoding string, x Server, address string, metric MetricID) {
		f := s.Fill(file, encoding)
		server := f.Server(x)
		if address != "" {
			f.Listens(server, address)
		}
		p := f.Place(Place{Server: server, Rank: trace.NoRank, GPU: NoGPU})
		if metric >= 0 {
			f.Add(f.Series(metric, p), at, 1)
		} else {
			f.Instant(Instant{Time: at, Kind: Unrouted, Place: p}, x.Name+" is gone")
		}
	}
	say("logs/decode-0.log", "server log", Server{Name: "logs/decode-0", Engine: "SGLang"}, "", Running)
	say("logs/decode-1.log", "server log", Server{Name: "logs/decode-1", Engine: "SGLang"}, "", Running)
	say("range.json", "Prometheus range", Server{Name: "decode-0", Host: "", Engine: "SGLang"}, "10.0.0.9:30000", Queued)
	for _, name := range []string{"10.0.0.9:30000", "decode-1.decode.llm.svc:30000", "10.0.0.7:30000"} {
		say("router.log", "router log", Server{Name: name}, "", -1)
	}
	say("events.json", "Kubernetes events", Server{Name: "decode-1", Host: "node3"}, "", -1)
	s.Finish(Known{})
	var got []string
	for i := range s.Instants {
		x := s.Servers[s.Places[s.Instants[i].Place].Server]
		got = append(got, s.Syms.Name(s.Instants[i].Text)+": "+x.Host+"/"+x.Name)
	}
	slices.Sort(got)
	if want := []string{"10.0.0.7:30000 is gone: /10.0.0.7:30000", "10.0.0.9:30000 is gone: /decode-0", "decode-1 is gone: node3/decode-1", "decode-1.decode.llm.svc:30000 is gone: node3/decode-1"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
