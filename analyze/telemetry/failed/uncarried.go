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

// lossCounters count requests whose KV transfer failed, without the prefix of the engine: those of SGLang's
// schedulers (python/sglang/srt/observability/metrics_collector.py), and of vLLM's NIXL connector. Timeouts are
// counted by each end (kv_transfer_metrics.py), so they are used only if no counter counts requests.
var lossCounters = [...]lossCounter{
	{"num_transfer_failed_reqs_total", "failed KV transfer", false},
	{"num_bootstrap_failed_reqs_total", "failed bootstrap", false},
	{"nixl_num_failed_transfers_total", "failed KV transfer", false},
	{"nixl_num_kv_expired_reqs_total", "expired KV cache", false},
	{"kv_transfer_timeouts_total", "KV transfer timeout", true},
}

type lossCounter struct {
	name, one string
	sees      bool
}

// A loss is what one server counts.
type loss struct {
	server      int32
	grew        [len(lossCounters)]growth
	n           float64
	first, last trace.Time // 0 is at an unknown time before the only scrape
	words       string
}

// A growth is how much the counters with one name grew, and when. The TP ranks of a DP rank count the same requests.
type growth struct {
	byDP        map[int16]float64
	first, last trace.Time
}

// sum sums up what a server counts.
func (x *loss) sum() {
	var of []string
	for k, c := range lossCounters {
		g, n := &x.grew[k], 0.0
		for _, grew := range g.byDP {
			n += grew
		}
		if n == 0 || c.sees && x.n > 0 {
			continue
		}
		x.n, x.first, x.last = x.n+n, order.Earlier(x.first, g.first), max(x.last, g.last)
		of = append(of, words.Counted(int(n), c.one))
	}
	x.words = strings.Join(of, " and ")
}

// countedTransfers finds servers whose metrics count failed KV transfers, if no log mentions any. Both ends of a
// transfer count it. The finding is led by a server whose peers of the same role count none.
func countedTransfers(l *telemetry.Logged) (out []finding.Finding, counted bool) {
	of := lossesOf(l)
	if len(of) == 0 || slices.ContainsFunc(l.Events, func(e telemetry.Event) bool { return isLostTransfer(&e) }) {
		return nil, len(of) > 0
	}
	var list []loss
	for server := range l.Set.Servers {
		if x, ok := of[int32(server)]; ok {
			if x.sum(); x.n > 0 {
				list = append(list, *x)
			}
		}
	}
	if len(list) == 0 {
		return nil, true
	}
	peers := func(x *loss) []string { return x.spared(l, of, list) }
	lead := slices.MaxFunc(list, func(a, b loss) int {
		if x, y := min(1, len(peers(&a))), min(1, len(peers(&b))); x != y {
			return x - y
		}
		return int(a.n - b.n)
	})
	return []finding.Finding{lead.finding(l, list, peers(&lead))}, true
}

// spared returns the servers of the same role that count none.
func (x *loss) spared(l *telemetry.Logged, of map[int32]*loss, list []loss) (peers []string) {
	for server := range of {
		if s := &l.Set.Servers[server]; telemetry.Role(s) == telemetry.Role(&l.Set.Servers[x.server]) && !slices.ContainsFunc(list, func(o loss) bool { return o.server == server }) {
			peers = append(peers, telemetry.Host(s))
		}
	}
	slices.Sort(peers)
	return peers
}

// finding makes the finding of a loss, with the losses of others, and the servers that count none.
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

// answeredBy returns the number of requests that servers other than decode servers count as ended; 0 if unknown.
func answeredBy(l *telemetry.Logged) (n float64) {
	for server := range l.Set.Servers {
		if s := &l.Set.Servers[server]; s.Role == "decode" {
			continue
		}
		for _, name := range []string{"num_requests_total", "request_success_total"} {
			for _, x := range l.Intervals(telemetry.WholeOf(int32(server)), name) {
				n += x.N
			}
		}
	}
	return n
}

// lossesOf returns what servers count, of those with such counters.
func lossesOf(l *telemetry.Logged) map[int32]*loss {
	of := map[int32]*loss{}
	begin, _, _ := l.Set.Bounds()
	for i := range l.Set.List {
		s := &l.Set.List[i]
		_, name, _ := strings.Cut(l.Set.Metric(s.Metric).Name, ":")
		k := slices.IndexFunc(lossCounters[:], func(c lossCounter) bool { return c.name == name })
		if k < 0 {
			continue
		}
		p := &l.Set.Places[s.Place]
		x := order.Memo(of, p.Server, func() *loss { return &loss{server: p.Server} })
		n, first, last := grown(l.Set, i, begin)
		if n == 0 {
			continue
		}
		g := &x.grew[k]
		if g.byDP == nil {
			g.byDP = map[int16]float64{}
		}
		g.byDP[p.Rank.DP] = max(g.byDP[p.Rank.DP], n)
		g.first, g.last = order.Earlier(g.first, first), max(g.last, last)
	}
	return of
}

// grown returns how much a counter grew, and from when to when; with a single sample, its value so far. A counter
// that appears later than others was 0 before.
func grown(set *series.Set, i int, begin trace.Time) (n float64, first, last trace.Time) {
	var before series.Sample
	samples := 0
	for s := range set.Each(i) {
		grew := s.Value - before.Value
		if from := before.Time; grew != 0 && (from != 0 || s.Time > begin+together) {
			if grew < 0 { // it restarted at 0
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
