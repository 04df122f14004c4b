package hardware

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// IdleSubkind is that of findings of GPUs that do nothing while their peers are busy.
const IdleSubkind = "idle"

const (
	// spinning is the use, in %, from which a GPU has a kernel at nearly all times, as one has that waits in a collective.
	spinning = 95
	// doesNothing is the use, in %, up to which a GPU has next to none.
	doesNothing = 5
	// worked is the use, in %, from which a GPU took part before.
	worked = 50
)

// idlers finds GPUs that worked, and do nothing any more, while all others of their host have a kernel at all times: as it is when these wait in
// a collective for the rank of that one.
func idlers(devices []*Device, from, to trace.Time) (list []finding.Finding) {
	for _, d := range devices {
		peers := d.peers(devices)
		if len(peers) < fewPeers {
			continue
		}
		every, n := spacing(d.util), 0
		var before []float64
		var since trace.Time
		for _, x := range d.util {
			all := true
			for _, o := range peers {
				v, ok := valueAt(o.util, x.Time, every)
				all = all && ok && v >= spinning
			}
			if all && x.Value <= doesNothing {
				if n++; n == 1 {
					since = x.Time
				}
				continue
			}
			n = 0
			before = append(before, x.Value)
		}
		if n < fewest || len(before) < fewest || order.Median(before) < worked {
			continue
		}
		f := finding.Finding{Subkind: IdleSubkind, Since: since, At: at(d), CostBasis: finding.GPUTime, Confidence: finding.Likely, Metric: finding.Metric{Name: "GPU busy in %", Before: order.Median(before), After: 0}}
		f.Text = fmt.Sprintf("%s does nothing since %s, while its %d peers are busy all the time; before, it was at %s %%", d.name(), words.At(since, "15:04:05"), len(peers), words.InPercent(order.Median(before)/100))
		f.Cost = float64(to-since) / float64(max(1, to-from)) / float64(len(devices))
		f.Evidence = append(f.Evidence, finding.Sentence("%s in a row, until the end", words.Counted(n, "scrape")))
		if then, now := medianOf(peers, from, since-1), medianOf(peers, since, to); then > now/lower {
			f.Evidence = append(f.Evidence, finding.Sentence("its peers draw %s W since then, %s before: they wait, and compute less", number(now), number(then)))
		}
		f.Evidence = append(f.Evidence, finding.Sentence("a rank that waits in a collective keeps its GPU busy: if all are of one job, they wait for the one on this GPU, and its log and stacks tell where it stands"))
		list = append(list, f)
	}
	return list
}

// medianOf returns the median of what GPUs draw between two times, in W; 0 without any.
func medianOf(devices []*Device, from, to trace.Time) float64 {
	list := between(from, to, devices, func(d *Device) []series.Sample { return d.power })
	if len(list) == 0 {
		return 0
	}
	return order.Median(list)
}

// between returns the values of samples of GPUs between two times.
func between(from, to trace.Time, devices []*Device, of func(*Device) []series.Sample) (list []float64) {
	for _, d := range devices {
		for _, s := range of(d) {
			if s.Time >= from && s.Time <= to {
				list = append(list, s.Value)
			}
		}
	}
	return list
}
