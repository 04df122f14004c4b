package consequence

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// If another server takes over the work of one that ended, that load and its consequences are part of the end, which
// costs the time that requests take longer. Load that rose long before, and load on a server of another role, are not.
func TestWhatComesForAnother(t *testing.T) {
	const second = trace.Time(1e9)
	at := func(host string) place.Location {
		return place.Location{Scope: place.OneRank, Role: request.Unified, Host: host, Rank: trace.NoRank}
	}
	for _, c := range []struct {
		name  string
		since trace.Time // when the load rises
		left  int
		cost  float64
	}{
		{"soon", 104, 1, 0.4},
		{"before", 50, 2, 0.3}, // its share is still larger after the end, which is a consequence
	} {
		found := []finding.Finding{
			{Kind: finding.Lifecycle, Subkind: failed.Ended, At: at("a"), Since: 100 * second, Cost: 0.1, CostBasis: finding.ServerTime, Text: "a is gone"},
			{Kind: finding.Load, Subkind: slow.Demand, At: at("b"), Since: c.since * second, Within: 2 * second, Cost: 0.3, CostBasis: finding.ServerTime, Text: "more comes to b"},
			{Kind: finding.Limit, Subkind: held.Batch, At: at("b"), Since: (c.since + 60) * second, Within: 2 * second, Cost: 0.2, CostBasis: finding.ServerTime, Text: "b is stuck"},
			{Kind: finding.Change, Subkind: slow.Latency, At: at("b"), Since: (c.since + 5) * second, Within: 2 * second, Cost: 0.4, CostBasis: finding.RequestTime, Text: "b is slow"},
			{Kind: finding.Imbalance, At: at("b"), Since: (c.since + 90) * second, Cost: 0.3, CostBasis: finding.ServerTime, Text: "b has more than its share"},
		}
		got := finding.Merge(found, slices.Concat(tookOver(found), Known))
		if len(got) != c.left || got[0].Text != "a is gone" || got[0].Cost != c.cost {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Slow transfers from a prefill server explain slower requests on a decode server.
func TestSlowTransfers(t *testing.T) {
	const second = trace.Time(1e9)
	for role, left := range map[request.Role]int{request.Decode: 1, request.Unified: 2} {
		found := []finding.Finding{
			{Kind: finding.Change, Subkind: slow.TransferSpeed, At: place.Location{Scope: place.OneRank, Role: request.Prefill, Host: "a", Rank: trace.NoRank}, Since: 100 * second},
			{Kind: finding.Change, Subkind: slow.Slowed, At: place.Location{Scope: place.OneRank, Role: role, Host: "b", Rank: trace.NoRank}, Since: 110 * second, Within: 5 * second,
				Metric: finding.Metric{Name: "TTFT"}, Cost: 0.1, CostBasis: finding.RequestTime},
		}
		if got := finding.Merge(found, Known); len(got) != left || left == 1 && got[0].Cost != 0.1 {
			t.Errorf("%v: %+v", role, got)
		}
	}
}

// What Kubernetes reports about a server that ended, or that was killed and restarted, is a consequence of that
// end; on another server, it is not.
func TestKubernetesSeesWhatEnded(t *testing.T) {
	const second = trace.Time(1e9)
	at := func(host string) place.Location { return place.At(request.Unified, host, trace.NoRank, nil) }
	for _, host := range []string{"a", "b"} {
		for _, found := range [][]finding.Finding{
			{{Kind: finding.Lifecycle, Subkind: failed.Ended, At: at("a"), Since: 100 * second, Cost: 0.1}, {Kind: finding.Lifecycle, Subkind: failed.Taken + " Unhealthy", At: at(host), Since: 130 * second, Cost: 0.1}},
			{{Kind: finding.GPU, Subkind: "Xid 79", At: at("a"), Since: 100 * second, Cost: 0.1}, {Kind: finding.Lifecycle, Subkind: failed.Taken + " Unhealthy", At: at(host), Since: 130 * second, Cost: 0.1}},
			{{Kind: finding.Lifecycle, Subkind: failed.Taken + " OOMKilling", At: at("a"), Since: 100 * second, Cost: 0.1}, {Kind: finding.Lifecycle, Subkind: failed.Restarted, At: at(host), Since: 90 * second, Until: 220 * second, Cost: 0.1}},
		} {
			want := 1
			if host == "b" {
				want = 2
			}
			if got := finding.Merge(found, Known); len(got) != want || got[0].Subkind != found[0].Subkind {
				t.Errorf("on %s: %d left of %s and %s", host, len(got), found[0].Subkind, found[1].Subkind)
			}
		}
	}
}

// Cold caches on servers that take over from stopped ones, load that a router moves past a busy tokenizer, clients
// that give up, and users of a slow link are consequences of their causes.
func TestWhatRoutersAndClientsDo(t *testing.T) {
	const since = trace.Time(1000e9)
	unified := place.Location{Scope: place.WholeRole, Role: request.Unified}
	one := rankAt(request.Unified, "a", 0, -1)
	share := finding.Metric{Name: change.ShareOfRequests, Unit: table.Share, Before: 0.5, After: 0.9}
	cached := finding.Metric{Name: finding.CachedTokens, Unit: table.Share, Before: 0.8, After: 0.1}
	link, seen := finding.Metric{Unit: table.Duration, Before: 1e6, After: 1e9}, finding.Metric{Unit: table.Share, Before: 0.01, After: 0.2}
	everywhere := place.Location{Scope: place.Everywhere}
	for name, c := range map[string]struct{ cause, effect finding.Finding }{
		"strangers":        {finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Stop, At: unified}, finding.Finding{Kind: finding.Change, Subkind: finding.CachedTokens, At: one, Metric: cached}},
		"past a tokenizer": {finding.Finding{Kind: finding.Front, Subkind: serverlimit.Tokenizer, At: unified}, finding.Finding{Kind: finding.Load, At: one, Metric: share}},
		"clients":          {finding.Finding{Kind: finding.Errors, Subkind: requests.GivenUp, At: everywhere}, finding.Finding{Kind: finding.Change, Subkind: change.GivenUpShare, At: everywhere, Metric: seen}},
		"users of a link":  {finding.Finding{Kind: finding.Transfer, Subkind: finding.SlowLink, At: rankAt(request.Prefill, "a", 0, -1), Metric: link}, finding.Finding{Kind: finding.Change, At: everywhere, Metric: seen}},
	} {
		c.cause.Since, c.effect.Since, c.effect.P = since, since+2e9, finding.Chance(1e-9)
		if got := finding.Merge([]finding.Finding{c.effect, c.cause}, Known); len(got) != 1 || got[0].Kind != c.cause.Kind {
			t.Errorf("%s: %+v", name, got)
		}
		if c.effect.Since = since - 100e9; name == "clients" {
			continue
		}
		if got := finding.Merge([]finding.Finding{c.effect, c.cause}, Known); len(got) != 2 {
			t.Errorf("%s, long before: %+v", name, got)
		}
	}
}

// Servers that stop serving at one time are one finding; one that stops much later is another.
func TestStopsAtOtherTimes(t *testing.T) {
	const second = trace.Time(1e9)
	both := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Stop, At: place.Location{Scope: place.WholeRole, Role: request.Unified}, Since: 100 * second}
	alone := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Stop, At: rankAt(request.Unified, "c", 0, -1), Since: 101 * second}
	for _, want := range []int{1, 2} {
		if got := finding.Merge([]finding.Finding{both, alone}, Known); len(got) != want {
			t.Errorf("since %v: %+v", alone.Since, got)
		}
		alone.Since = 160 * second
	}
}
