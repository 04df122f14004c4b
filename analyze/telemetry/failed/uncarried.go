package failed

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// lossCounters count requests whose KV cache did not arrive, behind the prefix of the engine: SGLang's of its schedulers
// (python/sglang/srt/observability/metrics_collector.py), and vLLM's of NIXL. Those of timeouts count what each end sees, and only where
// nothing counts requests (kv_transfer_metrics.py).
var lossCounters = []struct {
	name, one string
	sees      bool
}{
	{"num_transfer_failed_reqs_total", "failed KV transfer", false},
	{"num_bootstrap_failed_reqs_total", "failed bootstrap", false},
	{"nixl_num_failed_transfers_total", "failed KV transfer", false},
	{"nixl_num_kv_expired_reqs_total", "expired KV cache", false},
	{"kv_transfer_timeouts_total", "KV transfer timeout", true},
}

// A loss is what one server counts of one thing.
type loss struct {
	server      int32
	n           float64
	first, last trace.Time // 0 is at some time before the only scrape
	words       string
}

// countedTransfers finds servers whose metrics count KV caches that did not arrive, where no log tells of any. Both ends of a transfer count
// it: the one of which others of its role count none leads.
func countedTransfers(l *telemetry.Logged) (out []finding.Finding, counted bool) {
	var list []loss
	counts := map[int32]bool{}
	for server := range l.Set.Servers {
		x := loss{server: int32(server)}
		var of []string
		for _, c := range lossCounters {
			n, known := x.add(l, c.name, c.sees && x.n > 0)
			if known {
				counts[x.server] = true
			}
			if n > 0 {
				of = append(of, words.Counted(int(n), c.one))
			}
		}
		if x.words = strings.Join(of, " and "); x.n > 0 && !slices.ContainsFunc(l.Events, func(e telemetry.Event) bool { return isLostTransfer(&e) }) {
			list = append(list, x)
		}
	}
	counted = len(counts) > 0
	if len(list) == 0 {
		return nil, counted
	}
	peers := func(x *loss) []string { return x.spared(l, counts, list) }
	lead := slices.MaxFunc(list, func(a, b loss) int {
		if x, y := min(1, len(peers(&a))), min(1, len(peers(&b))); x != y {
			return x - y
		}
		return int(a.n - b.n)
	})
	return []finding.Finding{lead.finding(l, list, peers(&lead))}, counted
}

// spared returns the servers of the same role that count none.
func (x *loss) spared(l *telemetry.Logged, counts map[int32]bool, list []loss) (peers []string) {
	for server := range counts {
		if s := &l.Set.Servers[server]; telemetry.Role(s) == telemetry.Role(&l.Set.Servers[x.server]) && !slices.ContainsFunc(list, func(o loss) bool { return o.server == server }) {
			peers = append(peers, telemetry.Host(s))
		}
	}
	slices.Sort(peers)
	return peers
}

// finding is about a loss, beside others and the servers that count none.
func (x *loss) finding(l *telemetry.Logged, list []loss, peers []string) finding.Finding {
	s := &l.Set.Servers[x.server]
	f := finding.Finding{Subkind: Transfers, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: x.first, Until: x.last,
		Metric: finding.Metric{Name: series.TransferFailed.String(), Before: math.NaN(), After: x.n}}
	when := "since it began, by the only scrape"
	if x.first != 0 {
		when = (&counted{first: x.first, last: x.last}).between()
	}
	f.Text = fmt.Sprintf("%s counts %s %s", telemetry.Host(s), x.words, when)
	if len(peers) > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("others of its role count none: %s", words.Some(peers, 4)))
	}
	for _, o := range list {
		if o.server != x.server {
			f.Evidence = append(f.Evidence, finding.Sentence("%s counts %s", telemetry.Host(&l.Set.Servers[o.server]), o.words))
		}
	}
	if from, to, _ := l.Set.Bounds(); x.first != 0 {
		f.Cost = lost(l, x.server, x.n, takenIn(l)+answeredBy(l), share(x.last-x.first, to-from, 1))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("counters do not say why: the log of that server does, where it fails"))
	return f
}

// answeredBy is how many requests servers count as ended, of those that the requests of a decode server came from; 0 if nothing tells.
func answeredBy(l *telemetry.Logged) (n float64) {
	for server := range l.Set.Servers {
		if s := &l.Set.Servers[server]; s.Role == "decode" {
			continue
		}
		for _, name := range []string{"num_requests_total", "request_success_total"} {
			for _, x := range l.Intervals(int32(server), name) {
				n += x.N
			}
		}
	}
	return n
}

// add adds what the counters of a name count, unless that is counted already, and returns it; known is whether there are any. The TP ranks
// of a DP rank count the same requests. A counter that begins behind the others of its server had not counted before.
func (x *loss) add(l *telemetry.Logged, name string, already bool) (n float64, known bool) {
	byDP := map[int32]float64{}
	begin, _, _ := l.Set.Bounds()
	for i := range l.Set.List {
		s := &l.Set.List[i]
		p := &l.Set.Places[s.Place]
		if p.Server != x.server || !strings.HasSuffix(l.Set.Metric(s.Metric).Name, ":"+name) {
			continue
		}
		known = true
		if already {
			continue
		}
		grew, first, last := grown(l.Set, i, begin)
		if grew == 0 {
			continue
		}
		byDP[int32(p.Rank.DP)] = max(byDP[int32(p.Rank.DP)], grew)
		x.first, x.last = order.Earlier(x.first, first), max(x.last, last)
	}
	for _, of := range byDP {
		n += of
	}
	x.n += n
	return n, known
}

// grown returns by how much a counter grew, from when to when; of one sample, what it counted until then.
func grown(set *series.Set, i int, begin trace.Time) (n float64, first, last trace.Time) {
	var before series.Sample
	samples := 0
	for s := range set.Each(i) {
		grew := s.Value - before.Value
		if from := before.Time; grew != 0 && (from != 0 || s.Time > begin+together) {
			if grew < 0 { // it began again at 0
				grew = s.Value
			}
			if from == 0 {
				from = s.Time
			}
			if n += grew; first == 0 {
				first = from
			}
			last = s.Time
		}
		before = s
		samples++
	}
	if samples == 1 && before.Time <= begin+together {
		return before.Value, 0, 0
	}
	return n, first, last
}
