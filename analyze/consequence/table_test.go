package consequence

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

func rankAt(role request.Role, host string, tp, dp int16) place.Location {
	rank := trace.NoRank
	rank.TP, rank.DP = tp, dp
	return place.Location{Scope: place.OneRank, Role: role, Host: host, Rank: rank}
}

// If several finders see the same thing, that is one finding.
func TestMergeFindings(t *testing.T) {
	slow := rankAt(request.Decode, "c94b1e02", 1, 0)
	got := finding.Merge([]finding.Finding{
		{Kind: finding.Straggler, At: slow, Text: "ends last", Evidence: sentences("of 100"), Cost: 0.1},
		{Kind: finding.Straggler, At: rankAt(request.Other, "", 1, -1), Text: "arrives last", Cost: 0.02},                                         // the same rank, as profiles name it
		{Kind: finding.Straggler, At: rankAt(request.Decode, "c94b1e02", 1, 1), Text: "another DP rank", Cost: 0.03},                              // a different rank
		{Kind: finding.Straggler, At: rankAt(request.Decode, "feedbeef", 1, 0), Text: "another host", Cost: 0.03},                                 // a different rank, too
		{Kind: finding.Straggler, At: slow, Since: 7, Text: "lateness rose", Evidence: sentences("of 100", "at seven"), Cost: 0.2},                // the same as the first
		{Kind: finding.Load, Since: 5, Text: "arrivals rose", Cost: 0.01},                                                                         // the cause of the next two
		{Kind: finding.Imbalance, At: rankAt(request.Decode, "c94b1e02", 0, 1), Text: "DP1 gets most", Cost: 0.3},                                 // a consequence of arrivals
		{Kind: finding.Tail, Subkind: cause.Interference.String(), Text: "decode held up", Cost: 0.4},                                             // a consequence of both
		{Kind: finding.Tail, Subkind: cause.Router.String(), Text: "in the gateway", Cost: 0.001},                                                 // no consequence
		{Kind: finding.GPU, Subkind: "communication", Text: "communication", Cost: 0.05}, {Kind: finding.GPU, Subkind: "host", Text: "host wait"}, // the first is a consequence of the straggler, the second is not
	}, Known)
	finding.Sort(got)
	want := []struct {
		text     string
		evidence []string
		since    trace.Time
		cost     float64
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
		if g := &got[i]; g.Text != w.text || !slices.Equal(finding.Sentences(g.Evidence), w.evidence) || g.Since != w.since || g.Cost != w.cost {
			t.Errorf("finding %d: %+v\nwant %+v", i, g, w)
		}
	}
}

// Load that shifts elsewhere when a rank hangs, or later, is a consequence of the hang. Load that
// shifted before, load during the whole capture, and external load are not. Several ranks may hang.
func TestLoadOfHungRanks(t *testing.T) {
	const second = 1_000_000_000
	dp := func(n int16) place.Location { return rankAt(request.Decode, "c94b1e02", 0, n) }
	silent := func(n int16, since trace.Time, text string) finding.Finding {
		return finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Hang, At: dp(n), Since: since, Text: text, Cost: 1 / float64(since)}
	}
	load := func(at place.Location, since, until trace.Time, text string) finding.Finding {
		return finding.Finding{Kind: finding.Load, Scope: finding.Everywhere, At: at, Since: since, Until: until, Text: text}
	}
	for _, x := range []struct {
		found []finding.Finding
		want  []string
	}{
		{[]finding.Finding{load(dp(1), 101*second, 0, "share rose"), silent(0, 100*second, "DP0 silent")}, []string{"DP0 silent"}},
		{[]finding.Finding{load(dp(1), 99.5*second, 0, "share rose"), silent(0, 100*second, "DP0 silent")}, []string{"DP0 silent"}},
		{[]finding.Finding{load(dp(1), 60*second, 0, "share rose before"), silent(0, 100*second, "DP0 silent")}, []string{"DP0 silent", "share rose before"}},
		{[]finding.Finding{load(dp(1), 0, 0, "queues all the time"), silent(0, 100*second, "DP0 silent")}, []string{"DP0 silent", "queues all the time"}},
		{[]finding.Finding{load(place.Location{}, 101*second, 0, "arrivals rose"), silent(0, 100*second, "DP0 silent")}, []string{"DP0 silent", "arrivals rose"}},
		{[]finding.Finding{load(dp(2), 10*second, 20*second, "share rose"), load(dp(3), 60*second, 0, "share rose again"), silent(0, 50*second, "DP0 silent"), silent(1, 9*second, "DP1 silent")},
			[]string{"DP1 silent", "DP0 silent"}},
	} {
		got := finding.Merge(x.found, Known)
		finding.Sort(got)
		var texts []string
		for i := range got {
			texts = append(texts, got[i].Text)
		}
		if !slices.Equal(texts, x.want) {
			t.Errorf("%q, want %q", texts, x.want)
		}
	}
}

func sentences(list ...string) (out []finding.Evidence) {
	for _, text := range list {
		out = append(out, finding.Evidence{Text: text})
	}
	return out
}

func TestPlacesThatMayBeOne(t *testing.T) {
	everywhere, decode := place.Location{}, place.Location{Scope: place.WholeRole, Role: request.Decode}
	rank := rankAt(request.Decode, "a", 1, -1)
	for _, test := range []struct {
		x, y place.Location
		want bool
	}{
		{everywhere, rank, true},
		{decode, rank, true},
		{place.Location{Scope: place.WholeRole, Role: request.Prefill}, rank, false},
		{rank, rankAt(request.Decode, "a", 1, 3), true}, // its DP rank is unknown on one side
		{rank, rankAt(request.Decode, "a", 2, -1), false},
		{rank, rankAt(request.Decode, "b", 1, -1), false},
		{rank, rankAt(request.Other, "", 1, -1), true},
		{rank, rankAt(request.Prefill, "", 1, -1), false},
	} {
		if got := test.x.Overlaps(&test.y); got != test.want {
			t.Errorf("%v and %v: %v", test.x, test.y, got)
		}
		if got := test.y.Overlaps(&test.x); got != test.want {
			t.Errorf("%v and %v: %v", test.y, test.x, got)
		}
	}
}

// A finding about where time went is evidence for the requests that share a trait,
// if they are most of the requests that lost time there.
func TestWhoseRequestsLead(t *testing.T) {
	s := &request.Set{Requests: make([]request.Request, 20)}
	common := finding.Finding{Kind: finding.Common, Subkind: "tenant acme", Text: "acme", Cost: 0.1, Affected: finding.AffectedOf(s, []int{1, 3, 5, 7, 9, 11})}
	at := func(list ...int) finding.Finding {
		return finding.Finding{Kind: finding.Tail, Subkind: cause.Dispatch.String(), Text: "dispatch", Cost: 0.2, Affected: finding.AffectedOf(s, list)}
	}
	for _, test := range []struct {
		effect finding.Finding
		want   int
	}{
		{at(1, 3, 5, 7, 8), 1},
		{at(1, 2, 3, 4), 2},
		{at(), 2},
	} {
		if got := finding.Merge([]finding.Finding{common, test.effect}, Known); len(got) != test.want {
			t.Errorf("%+v: %d findings, want %d", test.effect.Affected, len(got), test.want)
		}
	}
}

// Waits are evidence of a limit if it holds back most of the waiting requests, or if the requests are unknown, as in logs.
func TestWaitsAtLimits(t *testing.T) {
	s := &request.Set{Requests: make([]request.Request, 20)}
	limit := finding.Finding{Kind: finding.Limit, Subkind: serverlimit.Prefills.String(), Text: "is prefill-bound", Cost: 0.04, Affected: finding.AffectedOf(s, []int{1, 3, 5})}
	for _, test := range []struct {
		who  finding.Affected
		want int
	}{
		{finding.AffectedOf(s, []int{1, 3}), 1},
		{finding.AffectedOf(s, []int{1, 2, 4, 6, 8}), 2},
		{finding.Affected{}, 1},
	} {
		waits := finding.Finding{Kind: finding.Load, Subkind: finding.Waits, Text: "waiting in the decode queue", Cost: 0.14, Affected: test.who}
		if got := finding.Merge([]finding.Finding{limit, waits}, Known); len(got) != test.want {
			t.Errorf("%+v: %d findings, want %d", test.who, len(got), test.want)
		}
	}
}

// Servers stall, clients give up and retry, and from then on the servers are overloaded: the stall leads. A limit that was
// reached before, much later, or elsewhere has another cause. A rank that becomes late when its server becomes slower leads that.
func TestWhatStaysAfterAStall(t *testing.T) {
	all := place.Location{Scope: place.WholeRole, Role: request.Unified}
	at := rankAt(request.Unified, "a", 0, -1)
	stall := finding.Finding{Kind: finding.Change, Subkind: finding.Stalls, At: all, Since: 100e9, Until: 114e9, Text: "stall"}
	limit := finding.Finding{Kind: finding.Limit, Subkind: serverlimit.Running.String(), At: at, Since: 114e9, Cost: 0.3, CostBasis: finding.RequestTime, Text: "effect"}
	late := finding.Finding{Kind: finding.Straggler, At: rankAt(request.Unified, "a", 5, -1), Since: 100e9, Text: "late", Metric: finding.Metric{After: 30}}
	slower := finding.Finding{Kind: finding.Change, Subkind: change.Pace, At: at, Since: 101e9, Text: "effect", Metric: finding.Metric{Before: 20, After: 55}}
	changed := func(f finding.Finding, how func(*finding.Finding)) finding.Finding {
		how(&f)
		return f
	}
	oneHost := changed(stall, func(f *finding.Finding) { f.At = rankAt(request.Unified, "b", 0, -1) })
	for name, x := range map[string]struct {
		cause, effect finding.Finding
		one           bool
	}{
		"since the stall":  {stall, limit, true},
		"before the stall": {stall, changed(limit, func(f *finding.Finding) { f.Since = 60e9 }), false},
		"always":           {stall, changed(limit, func(f *finding.Finding) { f.Since = 0 }), false},
		"much later":       {stall, changed(limit, func(f *finding.Finding) { f.Since = 200e9 }), false},
		"elsewhere":        {oneHost, limit, false},
		"a rank":           {late, slower, true},
		"of another host":  {late, changed(slower, func(f *finding.Finding) { f.At.Host = "b" }), false},
		"at another time":  {late, changed(slower, func(f *finding.Finding) { f.Since = 130e9 }), false},
		"by far more":      {late, changed(slower, func(f *finding.Finding) { f.Metric.After = 120 }), false},
		"faster":           {late, changed(slower, func(f *finding.Finding) { f.Metric.After = 10 }), false},
	} {
		got := finding.Merge([]finding.Finding{x.effect, x.cause}, Known)
		if one := len(got) == 1; one != x.one || one && got[0].Text != x.cause.Text {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// If a server seems slow during the whole capture, and also became slower by about
// as much, the change leads. A smaller change does not.
func TestSlowSinceItBecame(t *testing.T) {
	at := rankAt(request.Unified, "a", 0, -1)
	slow := finding.Finding{Kind: finding.Slower, At: at, Text: "slow", Metric: finding.Metric{Before: 20, After: 30}}
	for after, want := range map[float64]string{29: "became", 22: "slow"} {
		became := finding.Finding{Kind: finding.Change, Subkind: change.Pace, At: at, Since: 60e9, Text: "became", Metric: finding.Metric{Before: 20, After: after}}
		if got := finding.Merge([]finding.Finding{slow, became}, Known); len(got) != 1 || got[0].Text != want {
			t.Errorf("to %v: %+v, want %s", after, got, want)
		}
	}
}

// A server's end explains why its requests in flight got no answer, and repeated stalls explain slow tokens in its logs.
func TestWhatOthersSeeOfAServer(t *testing.T) {
	at, other := rankAt(request.Unified, "a", -1, -1), rankAt(request.Unified, "b", -1, -1)
	s := &request.Set{Requests: make([]request.Request, 20)}
	died := finding.Finding{Kind: finding.Errors, Subkind: failed.Died, At: at, Since: 100e9, Text: "died"}
	death := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Death, At: at, Since: 101e9, Text: "shows no sign", Affected: finding.AffectedOf(s, []int{3, 5})}
	stalls := finding.Finding{Kind: finding.Change, Subkind: finding.Stalls, At: at, Since: 100e9, Text: "stalls"}
	none := func(list ...int) finding.Finding {
		return finding.Finding{Kind: finding.Errors, At: at, Text: "got no answer", Affected: finding.AffectedOf(s, list)}
	}
	tokens := func(at place.Location, since trace.Time) finding.Finding {
		return finding.Finding{Kind: finding.Slower, At: at, Since: since, Text: "a token takes", Metric: finding.Metric{Name: slow.TimePerToken, Before: 1, After: 2}}
	}
	for name, x := range map[string]struct {
		cause, effect finding.Finding
		want          int
	}{
		"its requests":     {died, none(3, 5), 1},
		"other requests":   {died, none(7, 9, 11), 2},
		"its tokens":       {stalls, tokens(at, 95e9), 1},
		"long before":      {stalls, tokens(at, 20e9), 2},
		"another's tokens": {stalls, tokens(other, 95e9), 2},
	} {
		found := []finding.Finding{x.effect, x.cause}
		if x.cause.Kind == finding.Errors { // the death as seen in requests
			found = append(found, death)
		}
		got := finding.Merge(found, slices.Concat(seenTwice, Known))
		if len(got) != x.want || x.want == 1 && got[0].Text != x.cause.Text {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A consequence of a consequence belongs to the first cause: a GPU with a lower clock slows its server
// down, and requests there are slow.
func TestConsequencesOfConsequences(t *testing.T) {
	at, other := rankAt(request.Unified, "a", -1, -1), rankAt(request.Unified, "b", -1, -1)
	clock := finding.Finding{Kind: finding.GPU, Subkind: hardware.ClockSubkind, At: place.At(request.Other, "a", trace.NoRank, nil), Since: 100e9, Text: "clock"}
	pace := finding.Finding{Kind: finding.Change, Subkind: change.Pace, At: at, Since: 101e9, Text: "slower", Metric: finding.Metric{Before: 10, After: 16}}
	drift := pace
	drift.Since, drift.Full = 10e9, 300e9
	slow := func(at place.Location) finding.Finding {
		return finding.Finding{Kind: finding.Common, Subkind: tail.PlaceSubkind, At: at, Text: "requests there are slow"}
	}
	for name, x := range map[string]struct {
		found []finding.Finding
		want  []string
	}{
		"its requests":       {[]finding.Finding{slow(at), pace, clock}, []string{"clock"}},
		"those of another":   {[]finding.Finding{slow(other), pace, clock}, []string{"requests there are slow", "clock"}},
		"nothing in between": {[]finding.Finding{slow(at), clock}, []string{"requests there are slow", "clock"}},
		"gradually":          {[]finding.Finding{slow(at), drift, clock}, []string{"clock"}},
	} {
		var got []string
		for _, f := range finding.Merge(x.found, Known) {
			got = append(got, f.Text)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// If a server's end causes errors, these are evidence of it, unless they came before, or others returned them.
func TestAnswersOfDeadServers(t *testing.T) {
	at, other := rankAt(request.Unified, "a", -1, -1), rankAt(request.Unified, "b", -1, -1)
	died := finding.Finding{Kind: finding.Errors, Subkind: failed.Died, At: at, Since: 100e9, Text: "died"}
	for _, test := range []struct {
		at    place.Location
		since trace.Time
		want  int
	}{{at, 101e9, 1}, {at, 60e9, 2}, {other, 101e9, 2}} {
		answers := finding.Finding{Kind: finding.Errors, Subkind: failed.HTTP, At: test.at, Since: test.since, Text: "answers with errors"}
		if got := finding.Merge([]finding.Finding{answers, died}, Known); len(got) != test.want || test.want == 1 && got[0].Text != "died" {
			t.Errorf("answers at %v of %s: %+v", test.since, test.at.Host, got)
		}
	}
}

// An exception explains the answers with server errors at its time, but not more of them, those of another server, or refusals.
func TestAnswersOfExceptions(t *testing.T) {
	at := func(host string) place.Location {
		return place.Location{Scope: place.OneRank, Host: host, Rank: trace.NoRank}
	}
	for name, c := range map[string]struct {
		answers finding.Finding
		found   int
	}{
		"its answers":    {finding.Finding{At: at("a"), Since: 101e9, Until: 161e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 2}}, 1},
		"one of them":    {finding.Finding{At: at("a"), Since: 101e9, Until: 161e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 1}}, 1},
		"more answers":   {finding.Finding{At: at("a"), Since: 101e9, Until: 161e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 3}}, 2},
		"later":          {finding.Finding{At: at("a"), Since: 105e9, Until: 161e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 2}}, 2},
		"for longer":     {finding.Finding{At: at("a"), Since: 101e9, Until: 190e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 2}}, 2},
		"another server": {finding.Finding{At: at("b"), Since: 101e9, Until: 161e9, Metric: finding.Metric{Name: failed.ServerErrors, After: 2}}, 2},
		"refusals":       {finding.Finding{At: at("a"), Since: 101e9, Until: 161e9, Metric: finding.Metric{Name: "answers with 429", After: 2}}, 2},
	} {
		raised := finding.Finding{Kind: finding.Errors, Subkind: failed.Raised, At: at("a"), Since: 100e9, Until: 160e9, Text: "ValueError", Metric: finding.Metric{Name: "traceback", After: 2}}
		c.answers.Kind, c.answers.Subkind, c.answers.Text, c.answers.Cost = finding.Errors, failed.HTTP, "answers", 0.25
		got := finding.Merge([]finding.Finding{c.answers, raised}, Known)
		if finding.Sort(got); len(got) != c.found || c.found == 1 && (got[0].Text != "ValueError" || got[0].Cost != 0.25) {
			t.Errorf("%s: %d findings, want %d: %+v", name, len(got), c.found, got)
		}
	}
}

// The consequences of a network fault, the end of a peer, a probe, or a restarted router belong
// to that cause, even at other places.
func TestFollowsAtOtherPlaces(t *testing.T) {
	const second = 1_000_000_000
	at := func(role request.Role, host string) place.Location {
		return place.At(role, host, trace.NoRank, nil)
	}
	lost := finding.Finding{Kind: finding.Errors, Subkind: failed.Transfers, At: at(request.Decode, "d"), Since: 109 * second, Text: "lost", Metric: finding.Metric{Name: series.PeerLost.String()}}
	other := lost
	other.Metric.Name, other.Text, other.At = series.TransferFailed.String(), "timed out", at(request.Decode, "e")
	fewer := finding.Finding{Kind: finding.Change, Subkind: finding.CachedTokens, At: at(request.Unified, "a"), Since: 103 * second, Text: "fewer cached", Metric: finding.Metric{Before: 0.8, After: 0.2}}
	waits := finding.Finding{Kind: finding.Transfer, Subkind: finding.Waits, At: at(request.Decode, "d"), Since: 103 * second, Text: "waits for KV", Metric: finding.Metric{Before: 1, After: 2}}
	links := finding.Finding{Kind: finding.Transfer, Subkind: finding.SlowLink, Since: 102 * second, Text: "links", Metric: finding.Metric{Before: 1, After: 2}}
	longer := finding.Finding{Kind: finding.Change, Subkind: change.PromptLength, Since: 100 * second, Text: "longer prompts", Metric: finding.Metric{Before: 1, After: 2}}
	shorter := longer
	shorter.Text, shorter.Metric.Before = "shorter prompts", 3
	for _, x := range []struct {
		name  string
		found []finding.Finding
		want  []string
	}{
		{"the other side ended", []finding.Finding{{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Prefill, "p"), Since: 100 * second, Text: "died"}, lost, other}, []string{"died", "timed out"}},
		{"the other side ended, as a request tells", []finding.Finding{{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Decode, "d"), Since: 100 * second, Text: "died"},
			{Kind: finding.Errors, Subkind: failed.Transfers, At: at(request.Prefill, "p"), Since: 101 * second, Text: "sending failed: the decode server may be dead"}}, []string{"died"}},
		{"one of its role ended", []finding.Finding{{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Decode, "e"), Since: 100 * second, Text: "died"}, lost}, []string{"died", "lost"}},
		{"a process that others waited for ended", []finding.Finding{{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Unified, "s"), Since: 100 * second, Text: "killed"},
			{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Unified, "t"), Since: 102 * second, Text: "NCCL error: remote process exited"},
			{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Unified, "u"), Since: 300 * second, Text: "later: remote process exited"}}, []string{"killed", "later: remote process exited"}},
		{"a link went down", []finding.Finding{{Kind: finding.GPU, Subkind: hardware.Network, Since: 100 * second, Text: "link down"},
			{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Unified, "s"), Since: 99 * second, Text: "RuntimeError: DeepEP error: timeout (dispatch CPU)"},
			{Kind: finding.Errors, Subkind: failed.Died, At: at(request.Unified, "t"), Since: 99 * second, Text: "ValueError: no"}}, []string{"link down", "ValueError: no"}},
		{"a probe", []finding.Finding{{Kind: finding.Lifecycle, Subkind: failed.Taken + " Killed", Since: 100 * second, Text: "killed"},
			{Kind: finding.Lifecycle, Subkind: failed.Stop, At: at(request.Unified, "s"), Since: 101 * second, Text: "was told"},
			{Kind: finding.Lifecycle, Subkind: failed.Stop, At: at(request.Unified, "t"), Since: 301 * second, Text: "was told later"},
			{Kind: finding.Lifecycle, Subkind: failed.Hang, At: at(request.Unified, "s"), Since: 70 * second, Text: "was busy"},
			{Kind: finding.Lifecycle, Subkind: failed.Hang, At: at(request.Unified, "t"), Since: 70 * second, Cost: 0.1, Text: "hung"}}, []string{"killed", "was told later", "hung"}},
		{"prompts became longer", []finding.Finding{longer, waits}, []string{"longer prompts"}},
		{"prompts became shorter", []finding.Finding{shorter, waits}, []string{"shorter prompts", "waits for KV"}},
		{"a tokenizer is too busy", []finding.Finding{{Kind: finding.Front, Subkind: serverlimit.Tokenizer, At: at(request.Prefill, "p"), Since: 100 * second, Text: "tokenizer"}, waits,
			{Kind: finding.Change, At: at(request.Prefill, "p"), Since: 101 * second, Text: "less to wait for", Metric: finding.Metric{Before: 2, After: 1}}}, []string{"tokenizer"}},
		{"more requests, and all links", []finding.Finding{{Kind: finding.Load, Since: 100 * second, Text: "more", Metric: finding.Metric{Name: change.Arrivals, Before: 1, After: 2}}, links}, []string{"more"}},
		{"fewer requests, and all links", []finding.Finding{{Kind: finding.Load, Since: 100 * second, Text: "fewer", Metric: finding.Metric{Name: change.Arrivals, Before: 2, After: 1}}, links}, []string{"links"}},
		{"a router began anew", []finding.Finding{{Kind: finding.Lifecycle, Subkind: failed.Router, Since: 100 * second, Text: "anew"}, fewer}, []string{"anew"}},
		{"a router began anew later", []finding.Finding{{Kind: finding.Lifecycle, Subkind: failed.Router, Since: 200 * second, Text: "anew"}, fewer}, []string{"anew", "fewer cached"}},
	} {
		var got []string
		for _, f := range finding.Merge(x.found, Known) {
			got = append(got, f.Text)
		}
		slices.Sort(got)
		slices.Sort(x.want)
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// If users see longer times since requests wait at a limit, or since servers became slower, that is no
// finding of its own. Shorter times, or a change before that, are.
func TestWhatUsersSee(t *testing.T) {
	const second = 1_000_000_000
	dp1, host := rankAt(request.Unified, "c94b1e02", 0, 1), rankAt(request.Unified, "feedbeef", 0, -1)
	ttft := func(since trace.Time, before, after float64, text string) finding.Finding {
		return finding.Finding{Kind: finding.Change, Since: since, Text: text, Metric: finding.Metric{Before: before, After: after}}
	}
	for _, c := range []struct {
		seen finding.Finding
		want int
	}{{ttft(120*second, 1, 5, "longer"), 1}, {ttft(130*second, 5, 1, "shorter"), 2}, {ttft(20*second, 1, 5, "before"), 2}} {
		got := finding.Merge([]finding.Finding{{Kind: finding.Limit, Subkind: serverlimit.Room.String(), At: dp1, Since: 100 * second, Text: "full"}, c.seen}, Known)
		if len(got) != c.want {
			t.Errorf("%s: %+v", c.seen.Text, got)
		}
	}
	got := finding.Merge([]finding.Finding{
		{Kind: finding.Change, Subkind: change.Pace, At: place.Location{Scope: place.WholeRole, Role: request.Unified}, Since: 100 * second, Cost: 0.2, Text: "both became slower",
			Metric: finding.Metric{Name: "decode time per token", Before: 10, After: 16}},
		{Kind: finding.Slower, At: host, Since: 101 * second, Cost: 0.02, Text: "slower prefills", Metric: finding.Metric{Name: "prefill", Before: 60, After: 95}},
		ttft(120*second, 1, 5, "longer"),
	}, Known)
	if len(got) != 1 || got[0].Text != "both became slower" {
		t.Errorf("findings: %+v", got)
	}
}

// Prefills that take longer on a server while requests wait at its limit are due to full batches, if their pace
// has no claim of its own. Those on another server, and those with a claim, are not.
func TestBatchesBehindALimit(t *testing.T) {
	const second = 1_000_000_000
	at := rankAt(request.Unified, "a", 0, -1)
	stage := func(at place.Location, claim finding.Claim) finding.Finding {
		return finding.Finding{Kind: finding.Change, At: at, Since: 130 * second, Text: "prefill_forward p50 rose", Metric: finding.Metric{Before: 1, After: 2}, Claim: claim}
	}
	for _, x := range []struct {
		of   finding.Finding
		want int
	}{
		{stage(at, nil), 1},
		{stage(rankAt(request.Unified, "b", 0, -1), nil), 2},
		{stage(at, func(int, []int64) {}), 2},
	} {
		limit := finding.Finding{Kind: finding.Limit, Subkind: serverlimit.Prefills.String(), At: at, Since: 100 * second, Text: "prefill-bound"}
		if got := finding.Merge([]finding.Finding{limit, x.of}, Known); len(got) != x.want {
			t.Errorf("%d findings, want %d: %+v", len(got), x.want, got)
		}
	}
}

// What a watchdog of collectives says is evidence of the collective that did not end, even if nothing tells when it began; and a router
// that has no server for requests soon after one died lost it. Other hangs, and refusals before or because of a full queue, are apart.
func TestOneIncidentOneFinding(t *testing.T) {
	stuck := finding.Finding{Kind: finding.Hang, Text: "rank 1 waits for rank 0"}
	died := finding.Finding{Kind: finding.Errors, Subkind: failed.Died, At: place.At(request.Unified, "a", trace.NoRank, nil), Since: 100e9, Text: "it died"}
	router := place.At(request.Router, "router", trace.NoRank, nil)
	full := finding.Finding{Kind: finding.Limit, Subkind: held.KVCache, At: rankAt(request.Decode, "d", 0, -1), Since: 100e9, Text: "decode is full"}
	sends := finding.Finding{Kind: finding.Transfer, Subkind: held.SlowLink, At: rankAt(request.Prefill, "p", 0, -1), Since: 110e9, Text: "sending takes longer"}
	onTheWay := finding.Finding{Kind: finding.Limit, Subkind: held.OnTheWay, At: full.At, Since: 150e9, Text: "decode is full of what is on its way"}
	for name, c := range map[string]struct {
		cause, effect finding.Finding
		found         int
	}{
		"room on a decode server": {full, sends, 1},
		"a slow link":             {sends, onTheWay, 1},
		"a full prefill server":   {finding.Finding{Kind: finding.Limit, Subkind: held.KVCache, At: sends.At, Since: 100e9, Text: "prefill is full"}, sends, 2},
		"a watchdog":              {stuck, finding.Finding{Kind: finding.Lifecycle, Subkind: failed.Hang, Since: 700e9, Text: "rank 1: a collective timed out: ALLREDUCE number 7"}, 1},
		"a health check":          {stuck, finding.Finding{Kind: finding.Lifecycle, Subkind: failed.Hang, Since: 700e9, Text: "a: a health check failed"}, 2},
		"no server left":          {died, finding.Finding{Kind: finding.Errors, Subkind: failed.HTTP, At: router, Since: 140e9, Text: "router: the router has no server for a request"}, 1},
		"none before":             {died, finding.Finding{Kind: finding.Errors, Subkind: failed.HTTP, At: router, Since: 40e9, Text: "router: the router has no server for a request"}, 2},
		"its queue, full":         {died, finding.Finding{Kind: finding.Errors, Subkind: failed.HTTP, At: router, Since: 140e9, Text: "router: its queue is full"}, 2},
	} {
		got := finding.Merge([]finding.Finding{c.effect, c.cause}, Known)
		if len(got) != c.found || c.found == 1 && got[0].Text != c.cause.Text {
			t.Errorf("%s: %d findings, want %d: %+v", name, len(got), c.found, got)
		}
	}
}

// A change on devices at the time when a rank becomes late is evidence of its lateness. A rise in
// communication is evidence of exposed communication, and slower copies of exposed copies.
func TestChangesOfDevicesAreEvidence(t *testing.T) {
	late := func(since trace.Time, text string) finding.Finding {
		return finding.Finding{Kind: finding.Straggler, At: rankAt(request.Other, "", 1, -1), Since: since, Text: text, Cost: 0.1}
	}
	pace := finding.Finding{Kind: finding.Change, Subkind: overtime.PaceSubkind, At: rankAt(request.Other, "", 1, -1), Since: 50e9, Text: "longer", Brief: "since 50, longer", Cost: 0.02}
	more := finding.Finding{Kind: finding.Change, Subkind: metric.ExposedComm.Long, Since: 50e9, Text: "more", Brief: "since 50, more", Cost: 0.02}
	exposed := finding.Finding{Kind: finding.GPU, Subkind: "communication", Text: "exposed", Cost: 0.3}
	copying := finding.Finding{Kind: finding.GPU, Subkind: "copies", Text: "copying", Cost: 0.3}
	stages := func(slowest int16) finding.Finding {
		return finding.Finding{Kind: finding.GPU, Subkind: gpuloss.PipelineSubkind, At: rankAt(request.Other, "", slowest, -1), Text: "stages wait", Cost: 0.3}
	}
	slower := finding.Finding{Kind: finding.Change, Subkind: overtime.CopySubkind, Since: 50e9, Text: "slow", Brief: "since 50, slower", Cost: 0.1}
	for _, c := range []struct {
		found []finding.Finding
		want  []string
	}{
		{[]finding.Finding{late(51e9, "compute-bound"), pace}, []string{"compute-bound; since 50, longer"}},
		{[]finding.Finding{late(51e9, "host-bound"), pace}, []string{"host-bound", "longer"}},
		{[]finding.Finding{late(20e9, "compute-bound"), pace}, []string{"compute-bound", "longer"}},
		{[]finding.Finding{late(0, "compute-bound"), more}, []string{"compute-bound", "more"}},
		{[]finding.Finding{late(50e9, "compute-bound"), more}, []string{"compute-bound; since 50, more"}},
		{[]finding.Finding{exposed, more}, []string{"exposed; since 50, more"}},
		{[]finding.Finding{exposed, pace}, []string{"exposed", "longer"}},
		{[]finding.Finding{copying, slower}, []string{"copying; since 50, slower"}},
		{[]finding.Finding{exposed, slower}, []string{"exposed", "slow"}},
		{[]finding.Finding{stages(1), pace}, []string{"longer"}},
		{[]finding.Finding{stages(2), pace}, []string{"stages wait", "longer"}},
	} {
		var got []string
		for _, f := range finding.Merge(c.found, Known) {
			got = append(got, f.Text)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(got)-1] {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
