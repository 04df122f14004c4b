package overtime

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Findings tells since when devices are busy less, or communicate more that nothing hides,
// while there is as much to do. Changes for the better, and those of which nobody knows
// whether there was less to do, are in the table only.
func (t *Timeline) Findings() (found []finding.Finding, judged finding.Judged) {
	judged = finding.Judged{What: "changes of GPUs over time", Of: "device", N: t.judged, Needed: 1}
	if t.judged == 0 {
		judged.Reason = "too little of any GPU's work was recorded"
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		if c.lost <= 0 || !c.known || c.less || !c.lasts || c.Edge || c.back || c.lost < leastLost*float64(t.length)*float64(len(c.Where))/float64(len(t.Devices)) {
			continue
		}
		f := finding.Finding{
			Kind: finding.Change, Topic: c.What, Since: c.Time, Until: c.Until, Text: t.Sentence(c), P: finding.Chance(c.P),
			Metric: finding.Metric{Name: c.What, Unit: c.metric.unit(), Before: c.Before, After: c.After},
			Cost:   min(1, c.lost/float64(t.length)),
			Evidence: []finding.Evidence{finding.Sentence("%s if nothing had changed", words.Chance(c.P)).
				In("timeline.gpuchanges", finding.Row("what", c.What, "sentence", t.Sentence(c)), "p", c.P)},
		}
		if len(c.ranks) == 1 {
			f.At = place.Named(c.Where[0])
		}
		found = append(found, f)
	}
	return found, judged
}

// leastLost is the part of the time of its devices that a change costs at least to be a finding.
const leastLost = 0.05
