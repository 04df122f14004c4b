package golden

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// wireSpan is a span as the tests read it back, with what it belongs to.
type wireSpan struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Flags        int    `json:"flags"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Start        int64  `json:"startTimeUnixNano,string"`
	End          int64  `json:"endTimeUnixNano,string"`
	Attributes   wireAttributes
	Events       []struct {
		Time       int64 `json:"timeUnixNano,string"`
		Name       string
		Attributes wireAttributes
	}
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   int
	}
	Status struct{ Code int }

	service, process string
	seq              int // place in the file
	parent           *wireSpan
}

type wireAttributes []struct {
	Key   string
	Value struct {
		StringValue *string
		IntValue    *int64 `json:",string"`
		DoubleValue *float64
	}
}

// text returns an attribute as text, empty if there is none.
func (a wireAttributes) text(key string) string {
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

// key identifies a span: span ids alone need not be unique.
type key struct{ trace, span string }

// dump is a file read back.
type dump struct {
	run   *Run
	spans []*wireSpan
	byID  map[key]*wireSpan
}

// readBack writes a run and parses it with encoding/json.
func readBack(t *testing.T, r *Run) *dump {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOTLP(&b, r); err != nil {
		t.Fatal(err)
	}
	d := &dump{run: r, byID: map[key]*wireSpan{}}
	lines := bufio.NewScanner(&b)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		d.addLine(t, lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.spans {
		s.parent = d.byID[key{s.TraceID, s.ParentSpanID}]
	}
	return d
}

func (d *dump) addLine(t *testing.T, line []byte) {
	t.Helper()
	var export struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes wireAttributes }
			ScopeSpans []struct {
				Scope struct{ Name string }
				Spans []*wireSpan
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
			s.service, s.process = rs.Resource.Attributes.text("service.name"), rs.Resource.Attributes.text("service.instance.id")
			s.seq = len(d.spans)
			id := key{s.TraceID, s.SpanID}
			if d.byID[id] != nil {
				t.Fatalf("two spans %v", id)
			}
			d.byID[id] = s
			d.spans = append(d.spans, s)
		}
	}
}

// The layers of the tree.
const (
	layerGateway = "gateway"
	layerRoot    = "root"
	layerThread  = "thread"
	layerSlice   = "slice"
)

func (s *wireSpan) layer() string {
	switch {
	case s.service == "smg":
		return layerGateway
	case s.Attributes.text("module") == "sglang::request":
		return layerRoot
	case s.Attributes.text("thread_label") != "":
		return layerThread
	}
	return layerSlice
}

// root returns the SGLang root above a span.
func (s *wireSpan) root() *wireSpan {
	for s.layer() != layerRoot {
		s = s.parent
	}
	return s
}

// thread returns the thread span above a slice.
func (s *wireSpan) thread() *wireSpan {
	for s.layer() != layerThread {
		s = s.parent
	}
	return s
}

// skew returns by how much the clock of a span's host is ahead, in a run whose
// clocks do not drift.
func (d *dump) skew(s *wireSpan) int64 { return d.clock(s).at(s.Start) - s.Start }

// clock returns the clock of a span's host.
func (d *dump) clock(s *wireSpan) *clock {
	switch s.layer() {
	case layerGateway:
		return &d.run.hosts[0].clock
	case layerThread, layerSlice:
		for i := range d.run.hosts {
			if d.run.hosts[i].id == s.thread().Attributes.text("host_id") {
				return &d.run.hosts[i].clock
			}
		}
		panic("no host of " + s.Name)
	}
	role := strings.TrimSpace(strings.Split(s.root().Name, "Req ")[0])
	for _, in := range d.run.instances {
		if string(in.role) == role || role == "" {
			return &d.run.hosts[in.host].clock
		}
	}
	panic("no instance for " + s.root().Name)
}

func TestSpansFormTheDocumentedTree(t *testing.T) {
	for _, test := range configs {
		t.Run(test.name, func(t *testing.T) {
			d := readBack(t, simulateSmall(t, 11, test.change))
			for _, s := range d.spans {
				if err := checkSpan(d, s); err != nil {
					t.Fatalf("%s span %q: %v", s.layer(), s.Name, err)
				}
			}
		})
	}
}

var (
	rootName   = regexp.MustCompile(`^(|prefill|decode) Req [0-9a-f]{8}$`)
	threadPart = regexp.MustCompile(`^(Tokenizer|PrefillTokenizer|DecodeTokenizer|((Prefill|Decode) )?DP Controller|` +
		`((Prefill|Decode) )?Scheduler \[TP \d+\]  \[PP \d+\] ( \[DP \d+\] )?)\(host:[0-9a-f]{8} \| pid:\d+\)$`)
)

// Flags of OTLP (trace.proto, SpanFlags): whether the parent, or what a link leads to, is
// in another process, and that a trace is sampled.
const (
	local   = 0x100
	remote  = 0x300
	sampled = 0x1
)

// checkSpan checks one span against the facts about SGLang's dumps.
func checkSpan(d *dump, s *wireSpan) error {
	if s.Kind != 1 || s.End < s.Start {
		return fmt.Errorf("kind %d, %d ns", s.Kind, s.End-s.Start)
	}
	if s.parent != nil && s.parent.process == s.process && s.parent.seq < s.seq {
		return fmt.Errorf("after its parent %q", s.parent.Name)
	}
	switch s.layer() {
	case layerGateway:
		if s.parent != nil || s.Flags != sampled || len(s.Events) == 0 {
			return fmt.Errorf("flags %d, %d events", s.Flags, len(s.Events))
		}
	case layerRoot:
		return checkRoot(d, s)
	case layerThread:
		if s.parent == nil || s.parent.layer() != layerRoot || !threadPart.MatchString(s.Name) {
			return fmt.Errorf("odd name or no root above")
		}
		if failed := s.Status.Code == 2; failed != (s.Attributes.text("reason") != "") {
			return fmt.Errorf("status %d with reason %q", s.Status.Code, s.Attributes.text("reason"))
		}
	default:
		return checkSlice(d, s)
	}
	return nil
}

func checkRoot(d *dump, s *wireSpan) error {
	gateway := d.run.config.Mode == PDGateway
	wide := !strings.HasPrefix(s.TraceID, "0000000000000000")
	flags := local
	if gateway {
		flags = remote
	}
	if s.Flags != flags || gateway != (s.parent != nil) || gateway != wide {
		return fmt.Errorf("flags %d, trace %s, parent %v", s.Flags, s.TraceID, s.parent)
	}
	if !rootName.MatchString(s.Name) || !strings.HasSuffix(s.Name, s.Attributes.text("rid")[:8]) {
		return fmt.Errorf("rid %s", s.Attributes.text("rid"))
	}
	if id := s.Attributes.text("gen_ai.request.id"); id != "" && !strings.HasSuffix(id, s.Attributes.text("rid")) {
		return fmt.Errorf("rid %s of request %s", s.Attributes.text("rid"), id)
	}
	if s.Attributes.text("gen_ai.latency.e2e") != "" {
		return fmt.Errorf("has the latency that SGLang v2 never writes")
	}
	return onGrid(s.Start, s.End)
}

func checkSlice(d *dump, s *wireSpan) error {
	if s.parent == nil || s.parent.layer() == layerRoot || s.parent.layer() == layerGateway {
		return fmt.Errorf("no thread above")
	}
	if err := onGrid(s.Start); err != nil {
		return err
	}
	if s.Name != "decode_forward" { // closed by its thread
		if err := onGrid(s.End); err != nil {
			return err
		}
	}
	first := s.parent.layer() == layerThread && s.Name != "tokenize"
	if linked := len(s.Links) == 1; linked != first && d.run.config.Level > 0 {
		return fmt.Errorf("%d links", len(s.Links))
	}
	for _, l := range s.Links {
		to := d.byID[key{l.TraceID, l.SpanID}]
		if to == nil || to.layer() != layerSlice || to.root() != s.root() {
			return fmt.Errorf("link to %v", to)
		}
		flags := local
		if to.thread() != s.thread() {
			flags = remote
		}
		if l.Flags != flags {
			return fmt.Errorf("link with flags %d to %s", l.Flags, to.Name)
		}
		if to.Name != "run_batch_cpu" && to.End-512 > s.Start {
			return fmt.Errorf("starts %d ns before %s, which it follows, ends", to.End-s.Start, to.Name)
		}
	}
	return nil
}

func onGrid(times ...int64) error {
	for _, t := range times {
		if t%256 != 0 {
			return fmt.Errorf("time %d is not on the grid of 256 ns", t)
		}
	}
	return nil
}

// TestEventsAreWhereSGLangPutsThem checks that each event is on the slice around
// it that ended first, or on the thread if there is none.
func TestEventsAreWhereSGLangPutsThem(t *testing.T) {
	for _, test := range configs {
		t.Run(test.name, func(t *testing.T) {
			d := readBack(t, simulateSmall(t, 13, test.change))
			around := map[*wireSpan][]*wireSpan{} // slices that take events, by thread
			for _, s := range d.spans {
				if s.layer() == layerSlice && s.Name != "decode_forward" {
					around[s.thread()] = append(around[s.thread()], s)
				}
			}
			for _, s := range d.spans {
				if s.layer() == layerGateway || s.layer() == layerRoot {
					continue
				}
				for _, e := range s.Events {
					if retract := e.Name == "retract"; retract != (e.Attributes == nil) {
						t.Fatalf("event %s with attributes %v", e.Name, e.Attributes)
					}
					want := s.thread()
					for _, other := range around[s.thread()] { // in order of end
						if other.Start <= e.Time && e.Time < other.End {
							want = other
							break
						}
					}
					if s != want {
						t.Fatalf("event %s is on %s, not on %s", e.Name, s.Name, want.Name)
					}
				}
			}
		})
	}
}

func TestGridIsSGLangs(t *testing.T) {
	for at := int64(1_787_000_000_123_456_000); at < 1_787_000_000_123_466_000; at += 7 {
		if g := grid(at); g%256 != 0 || g-at >= 256 || at-g >= 256 {
			t.Fatalf("%d is put on %d, %d ns away", at, g, g-at)
		}
	}
}
