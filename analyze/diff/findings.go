package diff

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Findings are the rows that the verdict tells of, as records.
func (d *Diff) Findings() []finding.Finding {
	var list []finding.Finding
	for _, r := range d.told() {
		list = append(list, d.finding(r))
	}
	return list
}

// Mute takes the findings that covers holds for out of the findings and the verdict, which
// counts them.
func (d *Diff) Mute(covers func(*finding.Finding) bool) {
	for _, r := range d.told() {
		if f := d.finding(r); covers(&f) {
			d.muted = append(d.muted, r)
		}
	}
	d.verdict = d.words(d.locate)
}

func (d *Diff) finding(r *Row) finding.Finding {
	what, change, _, _ := r.telling()
	return finding.Finding{
		Kind: finding.Change, Topic: r.Kind.String() + " " + r.Name + " " + r.Rank, At: d.locate.at(r), Severity: finding.Info,
		Confidence: change.Sure, Text: d.plain(r), P: finding.Chance(change.Change.P),
		Metric: r.metric(what), Cost: min(1, d.weight(r)), Whose: r.whose(),
		Evidence: []finding.Evidence{finding.Sentence("%s %s", r.Kind, r.Name).In("diff",
			finding.Row("of", r.Kind.String(), "name", r.Name), what+"_ratio", change.Change.Ratio)},
	}
}

// metric is the number that a finding is about, in ns.
func (r *Row) metric(what string) finding.Metric {
	m := finding.Metric{Name: what, Unit: table.Duration}
	for _, n := range diffNumbers {
		if n.name == what {
			m.Before, m.After = float64(n.of(&r.Before)), float64(n.of(&r.After))
			if n.tenths {
				m.Before, m.After = m.Before/10, m.After/10
			}
		}
	}
	return m
}

// whose is what a row is a part of.
func (r *Row) whose() finding.Whose {
	if r.Kind.profiled() {
		return finding.GPUTime
	}
	return finding.RequestTime
}
