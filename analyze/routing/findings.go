package routing

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A rank stands out if it gets at least hotTimes the mean of all ranks, and chance is ruled out. Uneven layers stand
// out if they cost at least minCost of MoE time beyond chance.
const (
	hotTimes  = 1.05
	minCost   = 0.05
	rarely    = 0.01 // the largest p of a finding; certain from 0.001
	fewPasses = 20   // of a log
	maxLayers = 100
)

// Findings returns ranks that get more tokens than others, and sources with uneven layers.
func (r *Routing) Findings() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "tokens by expert and GPU", Of: "forward pass", Needed: 1}
	var list []finding.Finding
	unsized := false
	for _, s := range r.Sources {
		if s.EP == 0 {
			unsized = true
			continue
		}
		check.N += s.Passes
		switch {
		case s.EP < 2:
		case s.Recording == nil:
			list = append(list, s.logged()...)
		default:
			list = append(list, s.findings()...)
		}
	}
	switch {
	case len(r.Sources) == 0:
		check.Reason = "no input counts tokens by expert"
	case check.N == 0 && unsized:
		check.Reason = "nothing says how many GPUs share the experts: give 'sgtrace report --experts --ep-size N'"
	}
	return list, check
}

func (s *Source) findings() (list []finding.Finding) {
	rest := s.excess()
	if hot := &s.ByRank[s.Hot]; s.P <= rarely && hot.Times >= hotTimes {
		list = append(list, s.hotRank(hot))
		rest -= s.Single
	}
	if rest >= minCost {
		list = append(list, s.uneven(rest))
	}
	return list
}

func times(v float64) string { return fmt.Sprintf("%.2f times", v) }

// hotRank makes the finding that one rank gets more tokens than the others.
func (s *Source) hotRank(hot *Rank) finding.Finding {
	name := fmt.Sprintf("EP%d", hot.Rank)
	f := finding.Finding{Subkind: "experts " + s.Name, At: place.Named(name), P: finding.Chance(s.P), Cost: s.Single, CostBasis: finding.MoETime,
		Metric: finding.Metric{Name: "tokens of a rank by the mean", Unit: table.Number, Before: 1, After: hot.Times}}
	f.Text = fmt.Sprintf("the experts of %s get %s the tokens of the mean rank: it is the busiest in %d of %d layers", name, times(hot.Times), hot.Busiest, s.Layers)
	key := finding.Row("file", s.Name, "rank", name)
	say := func(format string, args ...any) finding.Evidence { return finding.Sentence(format, args...) }
	f.Evidence = append(f.Evidence, say("%s of %d got %s", name, s.EP, times(hot.Times)).In("experts.ranks", key, "of_mean", hot.Times))
	f.Evidence = append(f.Evidence, s.confirmed(hot)...)
	f.Evidence = append(f.Evidence, s.sure(&f)...)
	f.Evidence = append(f.Evidence, say("if it got no more than the next one, MoE layers would take %s %% less time, where that grows as tokens do", words.InPercent(s.Single)))
	if hot.Top.Expert >= 0 {
		f.Evidence = append(f.Evidence, say("its hottest expert is %d of layer %d, with %s the mean of the layer", hot.Top.Expert, hot.Top.Layer, times(hot.Top.Times)))
	}
	return f
}

// sure says what is uncertain about a recording, and lowers the confidence accordingly.
func (s *Source) sure(f *finding.Finding) (list []finding.Evidence) {
	list = append(list, finding.Sentence("GPUs wait %s %% of MoE time for the busiest one of each layer and pass; even routing of so many tokens would make that %s %%, by chance",
		words.InPercent(s.waits()), words.InPercent(s.chance())).In("experts", finding.Row("file", s.Name), "waits", s.waits()))
	if s.By == assumedSize {
		f.Confidence = finding.Likely
		list = append(list, finding.Sentence("that %d GPUs share the experts is an assumption, because that many ranks left files: --ep-size overrides it", s.EP))
	}
	if !s.Recording.Physical && s.Recording.Map == nil {
		f.Confidence = finding.Likely
		list = append(list, finding.Sentence("the file does not say where experts are: they are assumed to be in order, as without EPLB"))
	}
	return list
}

// confirmed says whether the kernels of experts take longer on the rank with more tokens.
func (s *Source) confirmed(hot *Rank) []finding.Evidence {
	if hot.Slower == 0 {
		return nil
	}
	slowest := hot
	for i := range s.ByRank {
		if x := &s.ByRank[i]; x.Slower > slowest.Slower {
			slowest = x
		}
	}
	text := fmt.Sprintf("profiles have %s the mean time in its kernels of experts", times(hot.Slower))
	more := (hot.Slower - 1) / (hot.Times - 1) // 1 if all of the time is for tokens, 0 if it is all for weights
	switch {
	case slowest != hot:
		text = fmt.Sprintf("refuted: %s, and EP%d has most, %s: tokens are not why", text, slowest.Rank, times(slowest.Slower))
	case more >= 0.25:
		text = "confirmed: " + text + ", the most of all ranks"
	case more <= 0.1:
		text = "refuted: " + text + ": they take as long with fewer tokens, as reading weights does"
	default:
		text += ", which is less than its tokens would explain"
	}
	return []finding.Evidence{finding.Sentence("%s", text).In("experts.ranks", finding.Row("file", s.Name, "rank", fmt.Sprintf("EP%d", hot.Rank)), "kernels_of_mean", hot.Slower)}
}

// uneven makes the finding that layers are uneven, without one rank that stands out.
func (s *Source) uneven(cost float64) finding.Finding {
	f := finding.Finding{Subkind: "layers " + s.Name, Cost: cost, CostBasis: finding.MoETime, Confidence: finding.Certain,
		Metric: finding.Metric{Name: "balancedness", Unit: table.Share, Before: 1 - s.chance(), After: 1 - s.waits()}}
	f.Text = fmt.Sprintf("experts are unevenly loaded: in the mean layer, the busiest of %d GPUs gets %s the mean tokens", s.EP, times(1/(1-s.waits())))
	switch hot := &s.ByRank[s.Hot]; {
	case hot.Times < hotTimes:
		f.Text += ", and no single GPU is why"
	case s.P > rarely:
		f.Evidence = append(f.Evidence, finding.Sentence("EP%d gets most, %s the mean, but some rank would in %s %% of cases if these experts were placed at random: not enough to say that it is one GPU",
			hot.Rank, times(hot.Times), words.InPercent(s.P)).In("experts.ranks", finding.Row("file", s.Name, "rank", fmt.Sprintf("EP%d", hot.Rank)), "of_mean", hot.Times))
	}
	f.Evidence = append(f.Evidence, s.sure(&f)...)
	if s.Placed < s.waits() {
		f.Evidence = append(f.Evidence, finding.Sentence("experts placed by these counts would make it %s %% at best, without copies of hot experts", words.InPercent(s.Placed)).
			In("experts", finding.Row("file", s.Name), "waits_placed", s.Placed))
	}
	worst := &s.ByLayer[0]
	for i := range s.ByLayer {
		if s.ByLayer[i].Times > worst.Times {
			worst = &s.ByLayer[i]
		}
	}
	f.Evidence = append(f.Evidence, finding.Sentence("layer %d is the least even: EP%d gets %s the mean, and expert %d alone %s that of an expert", worst.Layer, worst.Hot, times(worst.Times), worst.Top.Expert, times(worst.Top.Times)).
		In("experts.layers", finding.Row("file", s.Name, "layer", fmt.Sprint(worst.Layer)), "of_mean", worst.Times))
	return f
}

// logged finds in a log that passes are less even from some point on, or all the time, if that exceeds chance in a
// model with as many layers as possible.
func (s *Source) logged() (list []finding.Finding) {
	if s.Passes < fewPasses {
		return nil
	}
	f := finding.Finding{Subkind: "log " + s.Name, CostBasis: finding.MoETime, Confidence: finding.Likely}
	for _, c := range changepoint.Levels(s.balance, changepoint.Options{Alpha: rarely / 10}) {
		before, after := order.Mean(s.balance[c.From:c.At]), order.Mean(s.balance[c.At:c.To])
		if before-after < minCost {
			continue
		}
		f := f
		f.Since, f.P, f.Cost = s.times[c.At], finding.Chance(c.P), (before-after)*float64(c.To-c.At)/float64(s.Passes)
		if c.To < len(s.times) {
			f.Until = s.times[c.To]
		}
		f.Metric = finding.Metric{Name: "balancedness", Unit: table.Share, Before: before, After: after}
		f.Text = fmt.Sprintf("experts have been less evenly loaded since %s: the busiest of %d GPUs gets %s the mean tokens, %s before", words.At(f.Since, "15:04:05"), s.EP, times(1/after), times(1/before))
		f.Evidence = append(f.Evidence, finding.Sentence("the log of %s has a balancedness of %.3f in %s, and %.3f before", s.Name, after, words.Counted(c.To-c.At, "pass"), before))
		list = append(list, f)
	}
	if len(list) > 0 {
		return list
	}
	perPass := float64(s.Tokens) / float64(s.Passes) / maxLayers
	byChance := 1 - perPass/float64(s.EP)/newChance(s.EP).busiest(int64(math.Max(1, perPass)))
	if cost := 1 - s.Logged - math.Max(0, byChance); s.Tokens > 0 && cost >= minCost {
		f.Cost, f.Metric = cost, finding.Metric{Name: "balancedness", Unit: table.Share, Before: 1, After: s.Logged}
		f.Text = fmt.Sprintf("experts are unevenly loaded: in the mean layer, the busiest of %d GPUs gets %s the mean tokens, according to the log", s.EP, times(1/s.Logged))
		f.Evidence = append(f.Evidence, finding.Sentence("the mean balancedness of %s is %.3f; dumps of the recorder tell which GPU and which experts (POST dump_expert_distribution_record)", words.Counted(s.Passes, "pass"), s.Logged))
		list = append(list, f)
	}
	return list
}

// Even reports whether the tokens of a rank are no more than the mean, according to the counts.
func (r *Routing) Even(name string) (text string, ok bool) {
	for _, s := range r.Sources {
		g := rankOf(name, s.EP)
		if s.Recording == nil || s.EP < 2 || g < 0 || g >= len(s.ByRank) {
			continue
		}
		if x := &s.ByRank[g]; x.Times < hotTimes {
			return fmt.Sprintf("its experts get %s the tokens of the mean rank: routing is not why", times(x.Times)), true
		}
	}
	return "", false
}
