package analyze

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func rankAt(role request.Role, host string, tp, dp int16) Where {
	rank := trace.NoRank
	rank.TP, rank.DP = tp, dp
	return Where{Scope: OneRank, Role: role, Host: host, Rank: rank}
}

// One thing that several reports tell of is one finding.
func TestMergeFindings(t *testing.T) {
	slow := rankAt(request.Decode, "c94b1e02", 1, 0)
	got := mergeFindings([]Finding{
		{Kind: FindingStraggler, At: slow, Text: "ends last", Evidence: []string{"of 100"}, Weight: 0.1},
		{Kind: FindingStraggler, At: rankAt(request.Other, "", 1, -1), Text: "arrives last", Weight: 0.02},                                    // as profiles name it
		{Kind: FindingStraggler, At: rankAt(request.Decode, "c94b1e02", 1, 1), Text: "another DP rank", Weight: 0.03},                         // is not it
		{Kind: FindingStraggler, At: rankAt(request.Decode, "feedbeef", 1, 0), Text: "another host", Weight: 0.03},                            // nor is
		{Kind: FindingStraggler, At: slow, Since: 7, Text: "lateness rose", Evidence: []string{"of 100", "at seven"}, Weight: 0.2},            // the same
		{Kind: FindingLoad, Since: 5, Text: "arrivals rose", Weight: 0.01},                                                                    // with
		{Kind: FindingImbalance, At: rankAt(request.Decode, "c94b1e02", 0, 1), Text: "DP1 gets most", Weight: 0.3},                            // what it does
		{Kind: FindingTail, topic: CauseInterference.String(), Text: "decode held up", Weight: 0.4},                                           // and brings about
		{Kind: FindingTail, topic: CauseRouter.String(), Text: "in the gateway", Weight: 0.001},                                               // and what it does not
		{Kind: FindingGPU, topic: "communication", Text: "communication", Weight: 0.05}, {Kind: FindingGPU, topic: "host", Text: "host wait"}, // of a straggler, and not
	}, consequences)
	want := []struct {
		text     string
		evidence []string
		since    trace.Time
		weight   float64
	}{
		{"arrivals rose", []string{"DP1 gets most", "decode held up"}, 5, 0.4},
		{"ends last", []string{"of 100", "arrives last", "lateness rose", "at seven", "communication"}, 7, 0.1},
		{"another DP rank", nil, 0, 0.03},
		{"another host", nil, 0, 0.03},
		{"in the gateway", nil, 0, 0.001},
		{"host wait", nil, 0, 0},
	}
	if len(got) != len(want) {
		t.Fatalf("%d findings: %+v", len(got), got)
	}
	for i, w := range want {
		if g := &got[i]; g.Text != w.text || !slices.Equal(g.Evidence, w.evidence) || g.Since != w.since || g.Weight != w.weight {
			t.Errorf("finding %d: %+v\nwant %+v", i, g, w)
		}
	}
}

func TestPlacesThatMayBeOne(t *testing.T) {
	everywhere, decode := Where{}, Where{Scope: WholeRole, Role: request.Decode}
	rank := rankAt(request.Decode, "a", 1, -1)
	for _, test := range []struct {
		x, y Where
		want bool
	}{
		{everywhere, rank, true},
		{decode, rank, true},
		{Where{Scope: WholeRole, Role: request.Prefill}, rank, false},
		{rank, rankAt(request.Decode, "a", 1, 3), true}, // DP is not known of one
		{rank, rankAt(request.Decode, "a", 2, -1), false},
		{rank, rankAt(request.Decode, "b", 1, -1), false},
		{rank, rankAt(request.Other, "", 1, -1), true},
		{rank, rankAt(request.Prefill, "", 1, -1), false},
	} {
		if got := test.x.meets(&test.y); got != test.want {
			t.Errorf("%v and %v: %v", test.x, test.y, got)
		}
		if got := test.y.meets(&test.x); got != test.want {
			t.Errorf("%v and %v: %v", test.y, test.x, got)
		}
	}
}

// requestsThat are requests of which those with the given numbers failed.
func requestsThat(n int, failed ...int) *request.Set {
	s := &request.Set{Requests: make([]request.Request, n)}
	for i := range s.Requests {
		s.Requests[i] = request.Request{RID: string(rune('a' + i%26)), Start: trace.Time(1e9 * (i + 1))}
	}
	for _, i := range failed {
		s.Requests[i].Status, s.Requests[i].Reason = request.Failed, "Prefill transfer failed for request rank=0 "+s.Requests[i].RID
	}
	return s
}

func TestErrorFindings(t *testing.T) {
	b := newBill(new(request.Set), nil, nil)
	for _, test := range []struct {
		name string
		set  *request.Set
		want string
		at   trace.Time
	}{
		{"none", requestsThat(100), "", 0},
		{"one may be the client's fault", requestsThat(100, 50), "", 0},
		{"too few of many", requestsThat(2500, 50, 60), "", 0},
		{"spread", requestsThat(100, 10, 90), "2 of 100 requests got no answer; they started between 00:00:11.0 and 00:01:31.0", 0},
		{"from some time on", requestsThat(100, 80, 85, 90, 95), "4 of 100 requests got no answer, the first at 00:01:21.0; the 80 requests before did", 81e9},
	} {
		got := errorFindings(test.set, b)
		switch {
		case test.want == "" && len(got) > 0, test.want != "" && len(got) != 1:
			t.Errorf("%s: %+v", test.name, got)
		case test.want == "":
		case got[0].Text != test.want || got[0].Since != test.at || got[0].Evidence[0][2:] != " Prefill transfer failed":
			t.Errorf("%s: %+v", test.name, got[0])
		}
	}
	full := requestsThat(100, 1, 2, 3)
	for i := range full.Requests {
		if r := &full.Requests[i]; r.Status == request.Failed {
			r.Status, r.Reason = request.Aborted, "The request queue is full."
		}
	}
	if got := errorFindings(full, b); len(got) != 1 || got[0].Weight != 0.03 {
		t.Errorf("requests that were turned away: %+v", got)
	}
	for i := range full.Requests {
		full.Requests[i].Reason = "Aborted by the client"
	}
	if got := errorFindings(full, b); len(got) != 0 {
		t.Errorf("clients that gave up: %+v", got)
	}
}

// gpuThat is a device of 100 ms: so many ms waiting for the host, and exposed
// communication.
func gpuThat(hostWait, exposed int64) GPU {
	const ms = 1_000_000
	g := GPU{Rank: "TP0", First: 0, Last: 100 * ms, Rows: fewRows}
	g.Idle.Time[HostWait], g.Idle.Gaps[HostWait] = hostWait*ms, 10
	g.Running[1<<profile.ClassCommunication] = exposed * ms
	g.Running[1<<profile.ClassCompute] = (100 - hostWait - exposed) * ms
	return g
}

func TestGPUFindings(t *testing.T) {
	const ms = 1_000_000
	steps := func(total int64) []StepTime { return []StepTime{{Host: distribution.Summary{Total: total * ms}}} }
	few := gpuThat(90, 0)
	few.Rows--
	for _, test := range []struct {
		name string
		gpus GPUs
		want []float64 // weights
	}{
		{"busy", GPUs{GPUs: []GPU{gpuThat(10, 10)}, Steps: steps(100)}, nil},
		{"waits within steps", GPUs{GPUs: []GPU{gpuThat(40, 10)}, Steps: steps(100)}, []float64{0.4}},
		{"nothing to do between steps", GPUs{GPUs: []GPU{gpuThat(60, 10)}, Steps: steps(50)}, nil},
		{"waits in what steps there are", GPUs{GPUs: []GPU{gpuThat(80, 0)}, Steps: steps(50)}, []float64{0.3}},
		{"no steps, who knows", GPUs{GPUs: []GPU{gpuThat(40, 0)}}, nil},
		{"no steps, but more than half", GPUs{GPUs: []GPU{gpuThat(60, 0)}}, []float64{0.6}},
		{"communicates", GPUs{GPUs: []GPU{gpuThat(0, 20), gpuThat(0, 40)}, Steps: steps(100)}, []float64{0.3}},
		{"a try", GPUs{GPUs: []GPU{few}}, nil},
		{"no device", GPUs{}, nil},
	} {
		var got []float64
		for _, f := range test.gpus.findings(nil) {
			got = append(got, f.Weight)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// How much of exposed communication is waiting is told where ranks were seen to meet.
func TestExposedEvidence(t *testing.T) {
	g := GPUs{GPUs: []GPU{gpuThat(0, 30), gpuThat(0, 40)}}
	g.GPUs[1].Rank = "TP1"
	const shares = "from 30 % on TP0 to 40 % on TP1"
	if got := g.findings(nil)[0].Evidence; !slices.Equal(got, []string{shares}) {
		t.Errorf("no collectives: %q", got)
	}
	// Of 395 + 145 ns ranks wait for 290 + 40.
	s := newMeetings("TP0", "TP1")
	s.meet(0, 395, 290, 105)
	s.meet(1040, 40, 1000, 80)
	want := []string{shares, "53 % of the time in 2 collectives is waiting for the last rank, the rest moves data"}
	if got := g.findings(MeasureCollectives(s.Set, 0, 0).waiting())[0].Evidence; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
