package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// A Fix removes what findings of some kinds are about.
type Fix struct {
	Name string // value of --fix
	Doc  string
	// Of reports whether the fix is for a finding.
	Of func(f *finding.Finding) bool
	// Make makes the change for one finding, or returns nil if there is nothing to change.
	Make func(r *Run, f *finding.Finding) *Change
	// Alone makes the change without a finding; a fix with a nil Alone needs one.
	Alone func(r *Run) *Change
}

// fixes are all fixes. A finding gets the first one that is for it.
var fixes = []Fix{
	{"straggler", "a rank as fast as its peers, or a server as fast as those of its role",
		kinds(finding.Straggler, finding.Slower), (*Run).withoutStraggler, nil},
	{"routing", "requests spread evenly over the servers of a role, or the DP ranks of a server",
		func(f *finding.Finding) bool {
			return f.Kind == finding.Imbalance || f.Kind == finding.Load && f.Metric.Name == "share of requests"
		}, (*Run).evenly, nil},
	{"transfers", "no KV transfer takes longer than its size explains",
		func(f *finding.Finding) bool {
			return f.Kind == finding.Transfer || f.Kind == finding.Limit && f.Subkind == serverlimit.Transfers.String()
		}, (*Run).quickTransfers, func(r *Run) *Change { return r.quickTransfers(&finding.Finding{}) }},
	{"retractions", "KV cache for all requests: none is retracted, and none waits for memory",
		func(f *finding.Finding) bool {
			return f.Kind == finding.Memory || f.Kind == finding.Limit && f.Subkind == serverlimit.Room.String()
		}, (*Run).roomForAll, func(r *Run) *Change { return r.roomForAll(&finding.Finding{}) }},
	{"onset", "arrivals and step times as they were before",
		func(f *finding.Finding) bool {
			return f.Since != 0 && (f.Kind == finding.Change && (f.Subkind == change.Pace || f.Subkind == finding.Stalls) || f.Kind == finding.Load && f.Subkind == "")
		}, (*Run).asBefore, nil},
}

// FixNames lists the values of --fix: "straggler, routing".
func FixNames() string {
	names := order.EachRow(fixes, func(f *Fix) string { return f.Name })
	return strings.Join(names, ", ")
}

// kinds matches findings of some kinds.
func kinds(list ...finding.Kind) func(f *finding.Finding) bool {
	return func(f *finding.Finding) bool { return slices.Contains(list, f.Kind) }
}

// fixFor returns the fix for a finding, or nil.
func fixFor(f *finding.Finding) *Fix {
	if i := slices.IndexFunc(fixes, func(x Fix) bool { return x.Of(f) }); i >= 0 {
		return &fixes[i]
	}
	return nil
}

// Fix makes the change that --fix asks for: name is the name of a row of [fixes], applied to all findings that it is
// for, or the ID of a finding.
func (r *Run) Fix(name string, found []finding.Finding) (*Change, error) {
	if i := slices.IndexFunc(fixes, func(x Fix) bool { return x.Name == name }); i >= 0 {
		list := fixes[i].changes(r, found)
		if len(list) == 0 {
			return nil, fmt.Errorf("--fix %s: nothing was found that it could take away", name)
		}
		return Combine(list), nil
	}
	k := slices.IndexFunc(found, func(f finding.Finding) bool { return f.ID() == name })
	if k < 0 {
		return nil, fmt.Errorf("--fix %s: want %s, or the ID of a finding of these inputs, as 'sgtrace report --format json' prints it", name, FixNames())
	}
	c, err := r.change(&found[k])
	if err != nil {
		return nil, fmt.Errorf("--fix %s: %w", name, err)
	}
	return c, nil
}

// changes makes the changes for all findings that the fix is for. If there are none, it makes the one that needs no
// finding, if any.
func (x *Fix) changes(r *Run, found []finding.Finding) (list []*Change) {
	for k := range found {
		if f := &found[k]; x.Of(f) {
			if c := x.Make(r, f); c != nil {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 && x.Alone != nil {
		if c := x.Alone(r); c != nil {
			list = append(list, c)
		}
	}
	return list
}

// Changes makes a change for each finding. left says for which findings there is none, and why.
func (r *Run) Changes(found []finding.Finding) (list []*Change, left []string) {
	for i := range found {
		change, err := r.change(&found[i])
		if err != nil {
			left = append(left, fmt.Sprintf("no answer for %s: %v", found[i].ID(), err))
			continue
		}
		list = append(list, change)
	}
	return list, left
}

// change makes the change that removes the cause of a finding.
func (r *Run) change(f *finding.Finding) (*Change, error) {
	fix := fixFor(f)
	if fix == nil {
		return nil, errors.New(noCounterfactual(f))
	}
	if change := fix.Make(r, f); change != nil {
		return change, nil
	}
	return nil, errors.New("the replay has nothing to take away there")
}

// Explain sets, for each finding, the prediction without its cause, or the reason why there is none.
func Explain(m *finders.Measured, found []finding.Finding, objectives []requests.Objective) {
	var r *Run
	if m.Of.Requests != nil {
		r = New(m.Of.Requests, objectives)
	}
	steps := NewSteps(m)
	for i := range found {
		f := &found[i]
		answer, err := r.without(f, steps)
		if err != nil {
			f.NoWithout = err.Error()
			continue
		}
		f.Without, f.Assumed = answer.Metrics, answer.Assumed
	}
}

// without predicts the metrics without the cause of a finding: of requests, or of steps if the finding comes from
// profiles. r is nil without requests, and steps without profiles.
func (r *Run) without(f *finding.Finding, steps *Steps) (*Answer, error) {
	switch {
	case steps != nil && (f.Rank != "" || straggler.IsWorker(f)):
		return steps.without(f)
	case fixFor(f) == nil:
		return nil, errors.New(noCounterfactual(f))
	case r == nil:
		return nil, errors.New("no input has requests")
	case r.Refused != "":
		return nil, errors.New(r.Refused)
	}
	change, err := r.change(f)
	if err != nil {
		return nil, err
	}
	metrics, err := r.Ask(change)
	return &Answer{change, metrics}, err
}

// unknown says, by kind of finding, why a run without its cause cannot be predicted.
var unknown = map[finding.Kind]string{
	finding.Errors:    "a replay cannot tell what requests would have done that never ended",
	finding.Hang:      "a replay cannot tell what ranks would have done that never went on",
	finding.Lifecycle: "a replay cannot tell what servers would have done that were not there",
	finding.Loss:      "what was lost is not there to be replayed",
	finding.Tail:      "it says what requests suffer from, and not what to change",
	finding.Common:    "it says what requests suffer from, and not what to change",
	finding.Load:      "it says what requests suffer from, and not what to change",
	finding.Front:     "a replay keeps the way of requests to the schedulers as it was recorded",
	finding.Pipeline:  "a pipeline has several batches under way, which cannot be replayed",
	finding.GPU:       "it says what devices wait for, and nobody knows when hosts would have launched more",
	finding.Repeat:    "it is about several runs, and a replay is of one",
}

// noCounterfactual says why a run without the cause of a finding cannot be predicted.
func noCounterfactual(f *finding.Finding) string {
	if f.Kind == finding.Change && (f.Metric.Name == change.OutputLength || f.Metric.Name == change.PromptLength) {
		return "a replay keeps the lengths of prompts and answers"
	}
	return cmp.Or(unknown[f.Kind], "the replay has no change for it")
}

// withoutStraggler makes a rank end its steps with its peers, or gives a server the step times of its peers.
func (r *Run) withoutStraggler(f *finding.Finding) *Change {
	try := r.Plan(0)
	if f.Kind == finding.Straggler && r.OnTime(try, &f.At, f.Since) > 0 {
		return &Change{Name: f.At.String() + " as fast as its peers",
			do:      func(p *replay.Plan) { r.OnTime(p, &f.At, f.Since) },
			Assumed: []string{"steps end when the last of the other ranks ends them"}}
	}
	engines := r.In(&f.At)
	if f.At.Scope != place.OneRank || r.AsPeers(try, engines, f.Since) == 0 {
		return nil
	}
	return &Change{Name: f.At.DP() + " as fast as the others", do: func(p *replay.Plan) { r.AsPeers(p, engines, f.Since) },
		Assumed: []string{"its steps take as long as those of the other servers for the same work, at the same time"}}
}

// evenly spreads the requests of a group evenly.
func (r *Run) evenly(f *finding.Finding) *Change {
	engines := r.In(&f.At)
	if len(engines) == 0 {
		return nil
	}
	how := r.Routed(r.Engines[engines[0]].Group, f.Since)
	routing := &Change{Name: "even routing", do: func(p *replay.Plan) { r.Reroute(p, engines[:1], how, f.Since) },
		Assumed: []string{"requests go to the servers " + how.String() + ", with the cached tokens that they had"}}
	if burst := r.calmArrivals(f); burst != nil && f.Kind == finding.Load {
		return Combine([]*Change{routing, burst}) // the finding is about both
	}
	return routing
}

// calmArrivals makes requests arrive at the rate from before a finding. It returns nil if no more came than before.
func (r *Run) calmArrivals(f *finding.Finding) *Change {
	if f.Since == 0 {
		return nil
	}
	factor := r.Evenly(r.Plan(0), f.Since)
	if factor == 0 {
		return nil
	}
	return &Change{Name: "arrivals as before", do: func(p *replay.Plan) { r.Evenly(p, f.Since) },
		Assumed: []string{fmt.Sprintf("the same requests arrive, %.1f times as far apart while more came", factor)}}
}

// quickTransfers limits KV transfers to the time that their size explains.
func (r *Run) quickTransfers(f *finding.Finding) *Change {
	n := r.TypicalTransfers(r.Plan(0), &f.At, f.Since)
	if n == 0 {
		return nil
	}
	return &Change{Name: "no slow transfers", do: func(p *replay.Plan) { r.TypicalTransfers(p, &f.At, f.Since) },
		Assumed: []string{fmt.Sprintf("no KV transfer takes longer than its size explains; %s took over twice as long", words.Thousands(int64(n)))}}
}

// roomForAll removes the limit of the KV cache.
func (r *Run) roomForAll(*finding.Finding) *Change {
	if !r.Plan(0).KV(1) {
		return nil
	}
	return &Change{Name: "KV cache for all requests", do: func(p *replay.Plan) { p.UnlimitedKV() },
		Assumed: []string{"decode steps with more requests than any recorded take as long as the model says"}}
}

// asBefore undoes a change that happened at some time.
func (r *Run) asBefore(f *finding.Finding) *Change {
	if f.Kind == finding.Load {
		return r.calmArrivals(f)
	}
	at := f.At
	if at.Scope != place.Everywhere && at.Role == request.Router {
		return nil
	}
	if r.AsBefore(r.Plan(0), &at, f.Since, f.Until) == 0 {
		return nil
	}
	return &Change{Name: "steps as before", do: func(p *replay.Plan) { r.AsBefore(p, &at, f.Since, f.Until) },
		Assumed: []string{"steps take as long as before for the same work"}}
}
