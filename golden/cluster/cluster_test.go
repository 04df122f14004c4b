package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// Every scenario can be played and written. Its spans have parents unless their requests never
// ended, and nothing ends before it begins.
func TestScenarios(t *testing.T) {
	for i := range Scenarios {
		s := &Scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := s.Config(3)
			for p := range c.Pools { // an eighth of the load is enough here
				c.Pools[p].Rate /= 8
			}
			r := play(t, c)
			truth, err := s.Truth(r)
			if err != nil {
				t.Fatal(err)
			}
			if truth.Requests != truth.Finished+truth.GaveUp+truth.Broken+truth.Open {
				t.Errorf("ends of requests do not add up: %+v", truth)
			}
			if s.Healthy && truth.Requests != truth.Finished {
				t.Errorf("healthy, but %d of %d requests finished", truth.Finished, truth.Requests)
			}
			killed := slices.ContainsFunc(r.Processes, func(p Process) bool { return p.Killed != 0 })
			if lost := checkDump(t, r); lost > 0 && truth.Open == 0 && !killed {
				t.Errorf("%d spans without their parent, but all requests ended", lost)
			}
		})
	}
}

func play(t *testing.T, c Config) *Run {
	t.Helper()
	r, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkDump checks the spans of a run, and returns the number without a parent.
func checkDump(t *testing.T, r *Run) (orphans int) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	known, parents := map[string]bool{}, map[string]int{}
	lines := bufio.NewScanner(&b)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var line struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						SpanID, ParentSpanID, Name string
						Start                      int64 `json:"startTimeUnixNano,string"`
						End                        int64 `json:"endTimeUnixNano,string"`
					}
				}
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, rs := range line.ResourceSpans {
			for _, s := range rs.ScopeSpans[0].Spans {
				known[s.SpanID] = true
				if s.ParentSpanID != "" {
					parents[s.ParentSpanID]++
				}
				if s.End < s.Start-256 {
					t.Errorf("%s ends %d ns before it begins", s.Name, s.Start-s.End)
				}
			}
		}
	}
	for p, n := range parents {
		if !known[p] {
			orphans += n
		}
	}
	return orphans
}

// Without its fault, a run has the same requests, with the same durations before the fault. Playing a
// run again gives exactly the same durations.
func TestCalmIsTheSameRun(t *testing.T) {
	s := Find("deploy_8")
	r := play(t, s.Config(5))
	calm := play(t, r.Config.Calm())
	if len(r.Requests) != len(calm.Requests) {
		t.Fatalf("%d requests, %d without the fault", len(r.Requests), len(calm.Requests))
	}
	before, after := int64(0), int64(0)
	for i, ns := range extra(r, calm) {
		q, o := r.Requests[i], calm.Requests[i]
		if q.ID != o.ID || q.Arrival != o.Arrival || q.Prompt != o.Prompt || q.Output != o.Output {
			t.Fatalf("request %d is another one without the fault", i)
		}
		if q.End < r.Start+int64(r.Config.Faults[0].At) {
			before += max(ns, -ns)
		} else {
			after += ns
		}
	}
	if before != 0 || after <= 0 {
		t.Errorf("requests before the fault take %d ns longer, those after it %d ns", before, after)
	}
	for _, ns := range extra(calm, play(t, calm.Config)) {
		if ns != 0 {
			t.Fatalf("the same run twice differs by %d ns", ns)
		}
	}
}
