package otlp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

func TestSpansFormTheDocumentedTree(t *testing.T) {
	for _, test := range testinput.Configs {
		t.Run(test.Name, func(t *testing.T) {
			d := testinput.ReadSmall(t, test.Name)
			for _, s := range d.Spans {
				if err := checkSpan(d, s); err != nil {
					t.Fatalf("%s span %q: %v", s.Layer(), s.Name, err)
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

// OTLP flags (trace.proto, SpanFlags): whether the parent, or the target of a link, is in another
// process, and whether the trace is sampled.
const (
	local   = 0x100
	remote  = 0x300
	sampled = 0x1
)

// checkSpan checks one span against known facts about SGLang's dumps.
func checkSpan(d *testinput.Dump, s *testinput.Span) error {
	if s.Kind != 1 || s.End < s.Start {
		return fmt.Errorf("kind %d, %d ns", s.Kind, s.End-s.Start)
	}
	if s.Parent != nil && s.Parent.Process == s.Process && s.Parent.Seq < s.Seq {
		return fmt.Errorf("after its parent %q", s.Parent.Name)
	}
	switch s.Layer() {
	case testinput.LayerGateway:
		if s.Parent != nil || s.Flags != sampled || len(s.Events) == 0 {
			return fmt.Errorf("flags %d, %d events", s.Flags, len(s.Events))
		}
	case testinput.LayerRoot:
		return checkRoot(d, s)
	case testinput.LayerThread:
		if s.Parent == nil || s.Parent.Layer() != testinput.LayerRoot || !threadPart.MatchString(s.Name) {
			return fmt.Errorf("odd name or no root above")
		}
		if failed := s.Status.Code == 2; failed != (s.Attributes.Text("reason") != "") {
			return fmt.Errorf("status %d with reason %q", s.Status.Code, s.Attributes.Text("reason"))
		}
	default:
		return checkSlice(d, s)
	}
	return nil
}

func checkRoot(d *testinput.Dump, s *testinput.Span) error {
	gateway := d.Run.Config.Mode == simulator.PDGateway
	wide := !strings.HasPrefix(s.TraceID, "0000000000000000")
	flags := local
	if gateway {
		flags = remote
	}
	if s.Flags != flags || gateway != (s.Parent != nil) || gateway != wide {
		return fmt.Errorf("flags %d, trace %s, parent %v", s.Flags, s.TraceID, s.Parent)
	}
	if !rootName.MatchString(s.Name) || !strings.HasSuffix(s.Name, s.Attributes.Text("rid")[:8]) {
		return fmt.Errorf("rid %s", s.Attributes.Text("rid"))
	}
	if id := s.Attributes.Text("gen_ai.request.id"); id != "" && !strings.HasSuffix(id, s.Attributes.Text("rid")) {
		return fmt.Errorf("rid %s of request %s", s.Attributes.Text("rid"), id)
	}
	if s.Attributes.Text("gen_ai.latency.e2e") != "" {
		return fmt.Errorf("has the latency that SGLang v2 never writes")
	}
	return onGrid(s.Start, s.End)
}

func checkSlice(d *testinput.Dump, s *testinput.Span) error {
	if s.Parent == nil || s.Parent.Layer() == testinput.LayerRoot || s.Parent.Layer() == testinput.LayerGateway {
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
	first := s.Parent.Layer() == testinput.LayerThread && s.Name != "tokenize"
	if linked := len(s.Links) == 1; linked != first && d.Run.Config.Level > 0 {
		return fmt.Errorf("%d links", len(s.Links))
	}
	for _, l := range s.Links {
		to := d.ByID[testinput.SpanKey{Trace: l.TraceID, Span: l.SpanID}]
		if to == nil || to.Layer() != testinput.LayerSlice || to.Root() != s.Root() {
			return fmt.Errorf("link to %v", to)
		}
		flags := local
		if to.Thread() != s.Thread() {
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

// TestEventsAreWhereSGLangPutsThem checks that each event is on the enclosing slice that ended
// first, or else on the thread.
func TestEventsAreWhereSGLangPutsThem(t *testing.T) {
	for _, test := range testinput.Configs {
		t.Run(test.Name, func(t *testing.T) {
			d := testinput.ReadSmall(t, test.Name)
			around := map[*testinput.Span][]*testinput.Span{} // slices that take events, by thread
			for _, s := range d.Spans {
				if s.Layer() == testinput.LayerSlice && s.Name != "decode_forward" {
					around[s.Thread()] = append(around[s.Thread()], s)
				}
			}
			for _, s := range d.Spans {
				if s.Layer() == testinput.LayerGateway || s.Layer() == testinput.LayerRoot {
					continue
				}
				for _, e := range s.Events {
					if retract := e.Name == "retract"; retract != (e.Attributes == nil) {
						t.Fatalf("event %s with attributes %v", e.Name, e.Attributes)
					}
					want := s.Thread()
					for _, other := range around[s.Thread()] { // in order of end
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

// output returns what a run writes.
func output(t *testing.T, r *simulator.Run) (dump, truth []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := otlp.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	truth, err := json.Marshal(r.Truth())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), truth
}

func TestSeedDecidesEverything(t *testing.T) {
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		t.Run(mode.String(), func(t *testing.T) {
			change := func(c *simulator.Config) { c.Mode, c.Requests = mode, 60 }
			dump, truth := output(t, testinput.Play(t, 1, change))
			again, againTruth := output(t, testinput.Play(t, 1, change))
			if !bytes.Equal(dump, again) || !bytes.Equal(truth, againTruth) {
				t.Error("the same seed gave other bytes")
			}
			other, otherTruth := output(t, testinput.Play(t, 2, change))
			if bytes.Equal(dump, other) || bytes.Equal(truth, otherTruth) {
				t.Error("another seed gave the same bytes")
			}
		})
	}
}

// TestTruthIsTheSameAfterWriting checks that a writer leaves no state behind.
func TestTruthIsTheSameAfterWriting(t *testing.T) {
	r := testinput.Play(t, 3, func(c *simulator.Config) {})
	before, err := json.Marshal(r.Truth())
	if err != nil {
		t.Fatal(err)
	}
	if _, after := output(t, r); !bytes.Equal(before, after) {
		t.Error("writing changed the truth")
	}
}

func TestWriteErrorIsReported(t *testing.T) {
	r := testinput.Play(t, 1, func(c *simulator.Config) { c.Requests = 50 })
	for _, left := range []int{0, 1000, 200_000} {
		if err := otlp.Write(&testinput.BrokenWriter{Left: left}, r); !errors.Is(err, testinput.ErrBroken) {
			t.Errorf("after %d bytes: error %v", left, err)
		}
	}
}
