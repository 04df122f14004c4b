package gate

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Kinds are kinds of findings that must not be there.
type Kinds []finding.Kind

// ParseKinds reads a list such as "straggler,errors".
func ParseKinds(text string) (Kinds, error) {
	all := AllKinds()
	var list Kinds
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains(all, word) {
			return nil, unknown("kind of finding", word, all)
		}
		if kind := finding.Kind(word); !slices.Contains(list, kind) {
			list = append(list, kind)
		}
	}
	return list, nil
}

// AllKinds are the kinds that anything looks for.
func AllKinds() []string {
	var list []string
	for i := range finders.All {
		if kind := string(finders.All[i].Kind); !slices.Contains(list, kind) {
			list = append(list, kind)
		}
	}
	slices.Sort(list)
	return list
}

// Judge says which of the kinds were found. One that was not passes if any finder of it had
// enough data, and none that applies to the inputs had too little.
func (list Kinds) Judge(of *finders.Result) *Result {
	r := &Result{}
	for _, kind := range list {
		j := Judgment{Condition: string(kind), State: Passed, Before: math.NaN(), After: math.NaN(), Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
		found := slices.DeleteFunc(slices.Clone(of.Findings), func(f finding.Finding) bool { return f.Kind != kind })
		looked, short, reason := lookedFor(kind, of)
		switch {
		case len(found) > 0:
			j.State, j.Measured, j.Reason = Failed, words.Counted(len(found), "finding"), found[0].Text
			if f := &found[0]; f.P.Known {
				j.P = f.P.P
			}
		case len(short) > 0:
			j.State, j.Reason = Unjudged, strings.Join(short, "; ")
		case !looked:
			j.State, j.Reason = Unjudged, reason
		}
		r.Judgments = append(r.Judgments, j)
	}
	return r
}

// lookedFor reports whether any finder of a kind had what it needs, which had too little, and
// why the first one that does not apply does not.
func lookedFor(kind finding.Kind, of *finders.Result) (looked bool, short []string, reason string) {
	for i := range of.Judged {
		j := &of.Judged[i]
		if j.Finder.Kind != kind {
			continue
		}
		switch j.State() {
		case finding.LookedAt:
			looked = true
		case finding.TooLittle:
			text := j.Judged.String()
			short = append(short, strings.ToLower(text[:1])+text[1:])
		case finding.NotApplicable:
			reason = cmp.Or(reason, j.Reason)
		}
	}
	return looked, short, reason
}
