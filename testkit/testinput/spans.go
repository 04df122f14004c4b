package testinput

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Span is a span as the tests read it back, with its context.
type Span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Flags        int    `json:"flags"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Start        int64  `json:"startTimeUnixNano,string"`
	End          int64  `json:"endTimeUnixNano,string"`
	Attributes   Attributes
	Events       []struct {
		Time       int64 `json:"timeUnixNano,string"`
		Name       string
		Attributes Attributes
	}
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   int
	}
	Status struct{ Code int }

	service string
	Process string // service.instance.id
	Seq     int    // place in the file
	Parent  *Span
}

// Attributes are those of a span or an event.
type Attributes []struct {
	Key   string
	Value struct {
		StringValue *string
		IntValue    *int64 `json:",string"`
		DoubleValue *float64
	}
}

// Text returns an attribute as text, empty if there is none.
func (a Attributes) Text(key string) string {
	for _, kv := range a {
		if kv.Key != key {
			continue
		}
		switch v := kv.Value; {
		case v.StringValue != nil:
			return *v.StringValue
		case v.IntValue != nil:
			return fmt.Sprint(*v.IntValue)
		case v.DoubleValue != nil:
			return fmt.Sprint(*v.DoubleValue)
		}
	}
	return ""
}

// SpanKey identifies a span: span ids alone need not be unique.
type SpanKey struct{ Trace, Span string }

// Dump is a file read back.
type Dump struct {
	Run   *simulator.Run
	Spans []*Span
	ByID  map[SpanKey]*Span
}

var small sync.Map // *Dump by the name of a config, for several tests

// ReadSmall returns a small run of one of [Configs], read back. Tests must not change it.
func ReadSmall(t *testing.T, config string) *Dump {
	t.Helper()
	if d, ok := small.Load(config); ok {
		return d.(*Dump)
	}
	i := slices.IndexFunc(Configs, func(c Config) bool { return c.Name == config })
	const seed = 11
	d := ReadSpans(t, PlaySmall(t, seed, Configs[i].Change))
	small.Store(config, d)
	return d
}

// ReadSpans writes a run and parses it with encoding/json.
func ReadSpans(t *testing.T, r *simulator.Run) *Dump {
	t.Helper()
	var b bytes.Buffer
	if err := otlp.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	d := &Dump{Run: r, ByID: map[SpanKey]*Span{}}
	lines := bufio.NewScanner(&b)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		d.addLine(t, lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Spans {
		s.Parent = d.ByID[SpanKey{s.TraceID, s.ParentSpanID}]
	}
	return d
}

func (d *Dump) addLine(t *testing.T, line []byte) {
	t.Helper()
	var export struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes Attributes }
			ScopeSpans []struct {
				Scope struct{ Name string }
				Spans []*Span
			}
		}
	}
	if err := json.Unmarshal(line, &export); err != nil {
		t.Fatalf("line does not parse: %v", err)
	}
	for _, rs := range export.ResourceSpans {
		if len(rs.ScopeSpans) != 1 || len(rs.ScopeSpans[0].Spans) > 64 {
			t.Fatal("not one scope of up to 64 spans in a resource")
		}
		for _, s := range rs.ScopeSpans[0].Spans {
			s.service, s.Process = rs.Resource.Attributes.Text("service.name"), rs.Resource.Attributes.Text("service.instance.id")
			s.Seq = len(d.Spans)
			id := SpanKey{s.TraceID, s.SpanID}
			if d.ByID[id] != nil {
				t.Fatalf("two spans %v", id)
			}
			d.ByID[id] = s
			d.Spans = append(d.Spans, s)
		}
	}
}

// The layers of the tree.
const (
	LayerGateway = "gateway"
	LayerRoot    = "root"
	LayerThread  = "thread"
	LayerSlice   = "slice"
)

// Layer returns the layer of a span in the tree.
func (s *Span) Layer() string {
	switch {
	case s.service == "smg":
		return LayerGateway
	case s.Attributes.Text("module") == "sglang::request":
		return LayerRoot
	case s.Attributes.Text("thread_label") != "":
		return LayerThread
	}
	return LayerSlice
}

// Root returns the SGLang root above a span.
func (s *Span) Root() *Span {
	for s.Layer() != LayerRoot {
		s = s.Parent
	}
	return s
}

// Thread returns the thread span above a slice.
func (s *Span) Thread() *Span {
	for s.Layer() != LayerThread {
		s = s.Parent
	}
	return s
}

// Skew returns how far the clock of a span's host is ahead, in a run whose clocks do not drift.
func (d *Dump) Skew(s *Span) int64 { return d.Clock(s).At(s.Start) - s.Start }

// Clock returns the clock of a span's host.
func (d *Dump) Clock(s *Span) *simulator.Clock {
	switch s.Layer() {
	case LayerGateway:
		return &d.Run.Hosts[0].Clock
	case LayerThread, LayerSlice:
		for i := range d.Run.Hosts {
			if d.Run.Hosts[i].ID == s.Thread().Attributes.Text("host_id") {
				return &d.Run.Hosts[i].Clock
			}
		}
		panic("no host of " + s.Name)
	}
	role := strings.TrimSpace(strings.Split(s.Root().Name, "Req ")[0])
	for _, in := range d.Run.Instances {
		if string(in.Role) == role || role == "" {
			return &d.Run.Hosts[in.Host].Clock
		}
	}
	panic("no instance for " + s.Root().Name)
}
