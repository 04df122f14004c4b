package hardware

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A level is what a host or a container has little left of: of all that there is, what is used, or what is free.
type level struct {
	subkind, text string // of the text, %[1]s is who, %[2]s the rest, %[3]s all of it, and %[4]s what the series is of
	of, all       string
	free          bool // of is what is free, and not what is used
	// least is the part left below which it is told: the kernel kills what is about to use more than it may, and what writes to a full
	// disk fails.
	least float64
}

var levels = []level{
	{"memory limit", "%[1]s has %[2]s left of the %[3]s of memory that it may use", "container_memory_working_set_bytes", "container_spec_memory_limit_bytes", false, 0.05},
	{"memory", "%[1]s has %[2]s left of its %[3]s of memory", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", true, 0.02},
	{"disk space", "%[1]s has %[2]s left of %[3]s on %[4]s", "node_filesystem_avail_bytes", "node_filesystem_size_bytes", true, 0.01},
}

// lefts finds what is nearly used up at the last moment that its metrics have.
func lefts(set *series.Set) (list []finding.Finding) {
	for k := range levels {
		x := &levels[k]
		for i := range set.List {
			if set.Metric(set.List[i].Metric).Name != x.of {
				continue
			}
			for o := range set.List {
				if set.Metric(set.List[o].Metric).Name == x.all && set.List[o].Place == set.List[i].Place && set.List[o].Label == set.List[i].Label {
					if f, ok := x.find(set, i, o); ok {
						list = append(list, f)
					}
				}
			}
		}
	}
	return list
}

// find compares the last values of two series.
func (x *level) find(set *series.Set, of, all int) (f finding.Finding, ok bool) {
	var most []series.Sample
	for s := range set.Each(all) {
		most = append(most, s)
	}
	const unlimited = 1 << 60
	var first, last float64   // parts that are left
	var since, end trace.Time // from when on that is little, and the last sample
	left, n := 0.0, 0
	for s := range set.Each(of) {
		end = s.Time
		total, ok := valueAt(most, s.Time, spacing(most))
		if !ok && len(most) == 1 {
			total, ok = most[0].Value, true
		}
		if !ok || total <= 0 || total >= unlimited {
			continue
		}
		if left = s.Value; !x.free {
			left = max(0, total-s.Value)
		}
		if last = left / total; n == 0 {
			first = last
		}
		if n++; last >= x.least {
			since = 0
		} else if since == 0 {
			since = s.Time
		}
	}
	if since == 0 {
		return f, false
	}
	p := &set.Places[set.List[of].Place]
	w := hostOrPod{set.Servers[p.Server].Host, p.User}
	f = finding.Finding{Subkind: HostSubkind + x.subkind, At: w.at(), Since: since, Confidence: finding.Certain, Metric: finding.Metric{Name: x.of, Before: 1 - first, After: 1 - last}}
	total := most[len(most)-1].Value
	f.Text = fmt.Sprintf(x.text, w.called(), words.Size(int64(left)), words.Size(int64(total)), strings.ReplaceAll(set.Syms.Name(set.List[of].Label), ",", ", "))
	f.Text = strings.TrimSuffix(f.Text, " on ")
	if n == 1 {
		f.Text += " at " + words.At(since, "15:04:05")
		f.Evidence = append(f.Evidence, finding.Sentence("its metrics are of one moment: since when is not known"))
		return f, true
	}
	f.Text += ", since " + words.At(since, "15:04:05")
	f.Evidence = append(f.Evidence, finding.Sentence("it had %s %% left at first, and has %s %% at last", words.InPercent(first), words.InPercent(last)))
	if _, to, _ := set.Bounds(); to-end > 2*trace.Time(spacing(most)) && len(most) > 1 {
		f.Evidence = append(f.Evidence, finding.Sentence("it has no metrics since %s, while others go on: it ended, or was ended", words.At(end, "15:04:05")))
	}
	return f, true
}
