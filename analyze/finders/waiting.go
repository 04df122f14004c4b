package finders

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// waits explains exposed communication: how much of it is waiting in collectives, for whom,
// and what keeps that rank. Times are in ns.
type waits struct {
	waited          collective.Waited
	length, exposed int64  // summed over all devices
	communication   string // words for exposed
	waiting, atMost int64  // part of exposed that is certainly waiting, and that may be; how much of the waiting is hidden is unknown
	late            []lateRank
}

// A lateRank is why a rank was late in a spell.
type lateRank struct {
	spell  *straggler.Spell
	group  int // index into [collective.Waited].Groups
	name   string
	host   gaps.Late    // how long its devices waited for its host, in moments of the spell
	others int64        // mean of that over the other ranks
	later  int64        // total by which it came later than the mean of the others
	why    string       // reason over the whole capture, unless the host explains it
	blind  bool         // most of its launches are not recorded
	stood  []standstill // of its host and those of most others, where it is late in a few collectives
}

// mostlyWaiting is the part of exposed communication that must be waiting for reports to say so, and who is waited for.
const mostlyWaiting = 0.5

// newWaits explains waiting; it returns nil if communication is hidden, or mostly transfers, or if too little of it is known.
func newWaits(m *Measured, collector *gaps.Collector) *waits {
	w := &waits{waited: m.Collectives.Waited(), length: m.GPUs.Length(), communication: gpuloss.ExposedInWords(m.GPUs)}
	hidden := int64(0)
	for i := range m.GPUs.GPUs {
		g := &m.GPUs.GPUs[i]
		exposed := g.Exposed(kernelname.ClassCommunication)
		w.exposed = distribution.AddTimes(w.exposed, exposed)
		hidden = distribution.AddTimes(hidden, g.Time(kernelname.ClassCommunication)-exposed)
	}
	// Even if everything hidden were waiting, the rest of the waiting is exposed.
	w.waiting, w.atMost = min(max(0, w.waited.Wait-hidden), w.exposed), min(w.waited.Wait, w.exposed)
	much := distribution.Fraction(w.exposed, w.length) >= gpuloss.MinExposed(m.GPUs)
	if !much || !w.waited.Covered.Enough() || float64(w.waiting) < mostlyWaiting*float64(w.exposed) || len(w.waited.Groups) == 0 {
		return nil
	}
	w.findLate(m, collector)
	w.findStandstills(m)
	return w
}

// findLate finds why ranks are late in their spells: what their hosts did meanwhile, compared with the hosts of their group.
func (w *waits) findLate(m *Measured, collector *gaps.Collector) {
	var windows []gaps.Window
	for g := range w.waited.Groups {
		group := &w.waited.Groups[g]
		for i := range group.Spells {
			for _, at := range momentsOf(&group.Spells[i]) {
				for _, rank := range group.Set {
					windows = append(windows, gaps.Window{Rank: rank, From: at.From, To: at.To}.Moved(m.Of.Profiles.ClockOffsetOf(rank)))
				}
			}
		}
	}
	hosts := collector.Late(windows)
	for g := range w.waited.Groups {
		group := &w.waited.Groups[g]
		for i := range group.Spells {
			s := &group.Spells[i]
			late := lateRank{spell: s, group: g, name: group.Names[s.Rank], later: s.Later}
			if isFew(s.Moments) {
				late.later = s.Bulk.Lost / int64(len(group.Set)-1)
			}
			for range momentsOf(s) {
				for rank := range group.Set {
					if rank != s.Rank {
						late.others = distribution.AddTimes(late.others, hosts[rank].Time)
					}
				}
				late.host.Time = distribution.AddTimes(late.host.Time, hosts[s.Rank].Time)
				late.host.Causes = append(late.host.Causes, hosts[s.Rank].Causes...)
				hosts = hosts[len(group.Set):]
			}
			late.host.Causes = gaps.Sum(late.host.Causes)
			late.others /= int64(len(group.Set) - 1)
			if late.blind = slices.ContainsFunc(m.GPUs.GPUs, func(g gpu.GPU) bool {
				return g.RankIndex == group.Set[s.Rank] && 2*g.Called < g.Rows-g.Migrated
			}); !late.byHost() {
				late.why = m.Collectives.Why(group.Set, group.Set[s.Rank], m.GPUs, distribution.Ratio(float64(s.Later), float64(s.SyncPoints)))
			}
			w.late = append(w.late, late)
		}
	}
}

// momentsOf returns when a rank is late in a spell: all the time, or before the few collectives at which most is lost.
func momentsOf(s *straggler.Spell) []straggler.Moment {
	if isFew(s.Moments) {
		return s.Moments
	}
	return []straggler.Moment{{From: s.From, To: s.Ended}} // later work delays no collective
}

// isFew reports whether there are so few moments that each is looked at.
func isFew(of []straggler.Moment) bool { return len(of) > 0 && len(of) <= maxMoments }

const maxMoments = 5

// byHost reports whether a rank is late because its devices wait longer for their host than those of
// others: that makes up half of its lateness. The others don't idle meanwhile: they wait in collectives.
func (l *lateRank) byHost() bool { return 2*(l.host.Time-l.others) >= l.later }

// maxNamed limits the spells in a sentence, and the places in the code of a host.
const maxNamed = 3

// toldOf: a spell is reported only if the costliest one costs at most toldOf times as much; smaller spells only hide what happened.
const toldOf = 10

// text returns the leading sentence: who is waited for, when, and why.
func (w *waits) text(devices string) string {
	told := w.told()
	var list []string
	for i, l := range told {
		part := "for " + l.name
		follows := i > 0 && told[i-1].group == l.group
		if follows && told[i-1].spell.Stalls && !l.spell.Stalls {
			part = "and otherwise " + part
		}
		switch first, last := l.spell.From == 0, l.spell.To == 0; {
		case l.spell.Stalls:
			part += l.spell.Bulk.Alone("one collective", "collectives")
		case first && last:
		case first:
			part += " until " + words.At(l.spell.To, words.ClockLayout)
		case follows && !told[i-1].spell.Stalls && told[i-1].spell.To == l.spell.From:
			part = "then " + part
			if !last {
				part += " until " + words.At(l.spell.To, words.ClockLayout)
			}
		case last:
			part += " from " + words.At(l.spell.From, words.ClockLayout) + " on"
		default:
			part += " from " + words.At(l.spell.From, words.ClockLayout) + " to " + words.At(l.spell.To, words.ClockLayout)
		}
		if !l.spell.Stalls {
			part += l.spell.Bulk.Of(l.spell.Lost, "one collective", "collectives")
		}
		if i > 0 && told[i-1].group != l.group {
			part = "and " + part // in another group, at the same time
		}
		if !slices.Contains(list, part) && !slices.Contains(list, strings.TrimPrefix(part, "and ")) { // unless it is late in two groups alike
			list = append(list, part)
		}
	}
	text := fmt.Sprintf("%s %s%.0f %% of the time in collectives, %s%s%s", devices, w.atLeast(), 100*distribution.Fraction(w.waiting, w.length), w.howMuch(), strings.Join(list, ", "), w.because(told))
	for _, l := range told {
		text += l.standstills()
	}
	return text
}

// atLeast returns "at least " if more exposed communication may be waiting, by 1 % of the time or more.
func (w *waits) atLeast() string {
	if 100*(w.atMost-w.waiting) >= w.length {
		return "at least "
	}
	return ""
}

// because says what keeps the late ranks, each separately if it is not the same.
func (w *waits) because(told []*lateRank) string {
	host := int64(0)
	var there []gaps.Work
	var late, bound []string
	for _, l := range told {
		if l.byHost() {
			late = append(late, l.name)
			host = distribution.AddTimes(host, l.host.Time)
			there = append(there, l.host.Causes...)
		} else if collective.IsComputeBound(l.why) {
			bound = append(bound, l.name)
		}
	}
	all := len(late) == len(told)
	late, bound = order.Distinct(late), order.Distinct(bound) // a rank may have several spells
	switch {
	case all:
		text, during := "whose hosts launch late: their GPUs wait %s for them then", "while the hosts are "
		if len(late) == 1 {
			text, during = "whose host launches late: its GPU waits %s for it then", "while the host is "
		}
		text = fmt.Sprintf(", "+text, words.Nearly(host))
		if there = gaps.Sum(there); !mostlyKnown(there, host) {
			return text + ", for most of that with nothing recorded of what it does"
		}
		if at := inPlaces(there, 2); at != "" {
			text += ", " + during + at
		}
		return text
	case len(told) == 1 && told[0].why != "":
		return "; " + told[0].why + " (over the whole capture)"
	case len(late) == 0 || len(bound) == 0:
		return ""
	}
	are := map[bool]string{true: "the host of %s launches late, ", false: "the hosts of %s launch late, "}[len(late) == 1]
	return fmt.Sprintf("; "+are+"%s %s compute-bound", strings.Join(late, " and "), strings.Join(bound, " and "), words.IsOrAre(len(bound)))
}

// transfers says how much exposed communication transfers data: the part that is certainly not waiting.
func (w *waits) transfers() string {
	part := 100 * distribution.Fraction(w.exposed-w.atMost, w.length)
	if w.atLeast() != "" && part < 1 {
		return ", and some of the rest may be, too"
	}
	return fmt.Sprintf(", %s%.0f %% is data transfer", w.atLeast(), part)
}

// told returns the spells that cost most, ordered by group and time.
func (w *waits) told() []*lateRank {
	list := order.EachRow(w.late, func(l *lateRank) *lateRank { return l })
	slices.SortStableFunc(list, func(a, b *lateRank) int { return cmp.Compare(b.spell.Lost, a.spell.Lost) })
	list = list[:min(len(list), maxNamed)]
	list = slices.DeleteFunc(list, func(l *lateRank) bool { return toldOf*l.spell.Lost < list[0].spell.Lost })
	slices.SortStableFunc(list, func(a, b *lateRank) int {
		stalls := map[bool]int{true: -1}
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(stalls[a.spell.Stalls], stalls[b.spell.Stalls]), cmp.Compare(a.spell.From, b.spell.From))
	})
	return list
}

// howMuch says whether the reported ranks are all that is waited for.
func (w *waits) howMuch() string {
	told := int64(0)
	for _, l := range w.told() {
		told = distribution.AddTimes(told, l.spell.Lost)
	}
	switch part := distribution.Fraction(told, w.waited.Wait); {
	case part < 0.5:
		return "for many ranks, most of all "
	case part < 0.9:
		return "mostly "
	}
	return ""
}

// reason says what keeps a rank.
func (l *lateRank) reason() string {
	switch {
	case !l.byHost() && l.why != "":
		return l.why + " (over the whole capture)"
	case !l.byHost() && l.blind:
		return "the capture does not show what its host did"
	case !l.byHost():
		return "neither its host nor its kernels explain why"
	}
	text := fmt.Sprintf("its GPU waited %s for its host to launch, those of the other ranks %s", words.Nearly(l.host.Time), words.Nearly(l.others))
	if at := inPlaces(l.host.Causes, maxNamed); at != "" && mostlyKnown(l.host.Causes, l.host.Time) {
		text += "; its host was " + at
	}
	return text
}

// mostlyKnown reports whether the known places of hosts make up half of the time that devices
// waited for them, or none is known. If only little is known, the hosts were mostly elsewhere.
func mostlyKnown(places []gaps.Work, waited int64) bool {
	known := order.SumRows(places, func(w *gaps.Work) int64 {
		if w.Where == "" {
			return 0
		}
		return w.Time
	})
	return known == 0 || 2*known >= waited
}

// inPlaces says where hosts were, the longest time first; "" if unknown.
func inPlaces(causes []gaps.Work, few int) string {
	var list []string
	for _, c := range causes {
		if c.Where != "" && len(list) < few {
			list = append(list, "in "+c.Where+" for "+words.Nearly(c.Time))
		}
	}
	return strings.Join(list, ", ")
}

// evidence returns the numbers behind the leading sentence.
func (w *waits) evidence(all *gaps.Gaps) []finding.Evidence {
	part := func(ns int64) float64 { return 100 * distribution.Fraction(ns, w.length) }
	list := []finding.Evidence{finding.Sentence("%s is %.0f %% of the time: %s%.0f %% is waiting for late ranks%s%s",
		w.communication, part(w.exposed), w.atLeast(), part(w.waiting), w.transfers(), orAbsent(&w.waited))}
	if at := inPlaces(all.Busiest(func(gpu.Reason) bool { return true }), maxNamed); at != "" {
		list = append(list, finding.Sentence("over the whole capture, while GPUs of any rank wait for launches, hosts are %s", at))
	}
	for _, l := range w.told() {
		if l.spell.Stalls {
			list = append(list, finding.Sentence("the others waited %s for %s%s; %s", words.Nearly(l.spell.Lost), l.name, l.spell.Bulk.Alone("one collective", "collectives"), l.reason()))
			continue
		}
		list = append(list, finding.Sentence("%s came last in %s of %s collectives then: the others waited %s for it, out of %s in total; %s",
			l.name, words.Thousands(int64(l.spell.Last)), words.Thousands(int64(l.spell.SyncPoints)), words.Nearly(l.spell.Lost), words.Nearly(l.spell.All), l.reason()))
	}
	return list
}

// orAbsent says what transfers may be instead, if ranks have no files: it is unknown how long others wait for these.
func orAbsent(w *collective.Waited) string {
	if w.Lacking {
		return ", or waiting for ranks that are not in the files"
	}
	return ""
}

// lead turns the finding about exposed communication into one about the ranks that are waited
// for, which costs the waiting. If transfers are large, they become a finding of their own.
func (w *waits) lead(found []finding.Finding, m *Measured) []finding.Finding {
	f := &found[0]
	transfer := *f
	f.Text, f.Cost = w.text(gpuloss.GPUsWait(m.GPUs)), distribution.Fraction(w.waiting, w.length)
	f.Metric.Name, f.Metric.After = gpuloss.WaitMetric, f.Cost
	f.Evidence = append(w.evidence(m.Gaps), f.Evidence...)
	if !w.waited.ByClock {
		f.Confidence = finding.Likely // durations show who came last
	}
	if !w.isOneStraggler(m) {
		f.Subkind = gpuloss.WaitSubkind
		f.Text += w.beside(m)
	}
	switch told := w.told(); {
	case len(told) != 1:
	case collective.IsComputeBound(told[0].why): // plus what it computes longer, which is as long as each of the others waits for it
		f.Cost += distribution.Fraction(told[0].spell.Lost/int64(len(w.waited.Groups[told[0].group].Set)-1), w.length)
	case told[0].byHost() && len(told[0].stood) == 0 && m.canPlay():
		f.Rank = told[0].name
		m.playWithout(f, &collective.Change{Rank: m.Chain.Rank(f.Rank), Since: told[0].spell.From, Until: told[0].spell.To}, true)
	}
	if rest := distribution.Fraction(w.exposed-w.atMost, w.length); rest >= gpuloss.MinExposed(m.GPUs) {
		transfer.Cost, transfer.Metric.After = rest, rest
		transfer.Metric.Name, transfer.Subkind = "exposed transfers", gpuloss.TransferSubkind
		transfer.Text = fmt.Sprintf("%s %.0f %% of the time on exposed transfers of collectives (not overlapped by compute)%s", gpuloss.GPUsSpend(m.GPUs), 100*rest, orAbsent(&w.waited))
		found = append(found, transfer)
	}
	return found
}

// beside reports the straggler that costs most, unless it is reported already: a few long
// waits for one rank hide that the others wait for another one all along.
func (w *waits) beside(m *Measured) string {
	told := w.told()
	for _, s := range m.Collectives.Stragglers(m.GPUs) {
		if !slices.ContainsFunc(told, func(l *lateRank) bool { return l.name == s.Name }) {
			return fmt.Sprintf("; beside that, they wait %.0f %% of the time for %s, which comes last in %s of %s collectives", 100*distribution.Fraction(s.Lost, w.length), s.Name,
				words.Thousands(int64(s.Last)), words.Thousands(int64(s.SyncPoints)))
		}
	}
	return ""
}

// isOneStraggler reports whether one straggler explains most of the waiting, and so has the
// leading finding. Waits for a few single collectives don't count.
func (w *waits) isOneStraggler(m *Measured) bool {
	lost := int64(0)
	for _, s := range m.Collectives.Stragglers(m.GPUs) {
		lost = max(lost, s.Lost-s.Bulk.Lost)
	}
	return float64(lost) >= oneExplains*float64(w.waited.Wait)
}

// oneExplains is the least part of all waiting that must be for one rank for it to be the explanation.
const oneExplains = 0.75

func longPrompts(m *Measured) ([]finding.Finding, finding.Check) {
	return m.Limits.PromptFindings(m.Costs)
}

// lateOnHosts finds ranks that come late to host collectives.
func lateOnHosts(m *Measured) ([]finding.Finding, finding.Check) {
	if m.OfHosts == nil {
		return nil, finding.Check{What: "lateness in gloo collectives", Of: "gloo collective", Needed: 1, Reason: "no gloo collectives were recorded"}
	}
	found, check := m.OfHosts.Findings(m.GPUs)
	for i := range found {
		if at := inPlaces(m.lateHosts[found[i].At.RankName()], maxNamed); at != "" {
			found[i].Evidence = append(found[i].Evidence, finding.Sentence("while its GPU waited for launches then, its host was %s", at))
		}
	}
	return found, check
}

// findLateHosts finds what hosts did meanwhile, for ranks that are late in host collectives because of their hosts.
func (m *Measured) findLateHosts(collector *gaps.Collector) {
	if m.OfHosts == nil {
		return
	}
	var windows []gaps.Window
	var names []string
	for _, s := range m.OfHosts.Late(m.GPUs) {
		rank := int32(slices.Index(m.Of.Profiles.Ranks, s.Name))
		if rank >= 0 && collective.IsHostBound(s.Cause) {
			windows = append(windows, gaps.Window{Rank: rank, From: s.Since, To: s.Until}.Moved(m.Of.Profiles.ClockOffsetOf(rank)))
			names = append(names, s.Name)
		}
	}
	if len(windows) == 0 {
		return
	}
	m.lateHosts = map[string][]gaps.Work{}
	for i, late := range collector.Late(windows) {
		m.lateHosts[names[i]] = late.Causes
	}
}

// tellMeetings says for whom hosts wait, if devices are idle mostly because hosts do.
func (m *Measured) tellMeetings(idle []finding.Finding) {
	for i := range idle {
		f := &idle[i]
		if f.Subkind != gpuloss.MeetSubkind || m.OfHosts == nil {
			continue
		}
		late := m.OfHosts.Late(m.GPUs)
		waited := m.OfHosts.Waited()
		lost := int64(0)
		var names []string
		for k := range late {
			lost = distribution.AddTimes(lost, late[k].Lost)
			names = append(names, late[k].Name)
		}
		f.Text += fmt.Sprintf("; %.0f %% of the time in them is waiting for the last rank", 100*distribution.Fraction(waited.Wait, waited.Took))
		if len(late) > 0 {
			f.Text += fmt.Sprintf(", %.0f %% of that for %s", 100*distribution.Fraction(lost, waited.Wait), strings.Join(names, ", "))
		}
		if len(late) != 1 || float64(lost) < oneExplains*float64(waited.Wait) {
			f.Subkind = "idle" // nobody in particular is at fault
		}
		if len(late) == 0 {
			for _, sentence := range m.OfHosts.Verdict(nil) {
				f.Evidence = append(f.Evidence, finding.Sentence("%s", sentence))
			}
		}
		f.Evidence = append(f.Evidence, m.OfHosts.Begin()...)
	}
}
