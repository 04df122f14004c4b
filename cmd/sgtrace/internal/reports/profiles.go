package reports

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/kernel"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

var (
	errNoProfiles      = errors.New("no input is a PyTorch trace or an Nsight Systems export")
	errNoDumps         = errors.New("no input has requests")
	errNothingSelected = errors.New("the selection leaves nothing; 'sgtrace inspect' shows hosts, ranks, and times")
	errOnlyInFlight    = errors.New("the inputs say where processes stand at one moment, and not what they did before; 'sgtrace report --hang' says who waits for whom")
)

// onlyInFlight reports whether the inputs have only dumps of what processes have in flight.
func (in *Reading) onlyInFlight() bool {
	return in.Requests == nil && in.Profiles == nil && in.Series == nil && in.Flight != nil
}

// needProfiles returns an error if there are no profiles to report on.
func (in *Reading) needProfiles() error {
	switch {
	case in.Profiles != nil:
		return nil
	case in.Selected:
		return errNothingSelected
	}
	return errNoProfiles
}

// windowed reports whether a window of time is selected.
func (in *Reading) windowed() bool { return in.From != 0 || in.To != 0 }

// noneSelected returns the error for a selection that leaves no rows; what completes "--from and --to select".
func (in *Reading) noneSelected(what string) error {
	if !in.windowed() || in.Last == 0 {
		return errNothingSelected
	}
	return fmt.Errorf("--from and --to select %s: the captures %s", what, words.Were(in.First, in.Last))
}

// CheckWindow returns an error if a report has no rows because the window of time is before or after
// everything that was read. If it is within, the report notes that only the window counts.
func (in *Reading) CheckWindow(d *document.Document) error {
	if in.Profiles == nil || !in.windowed() || slices.ContainsFunc(d.Tables, func(t *table.Table) bool { return t.Len() > 0 }) {
		return nil
	}
	if in.To != 0 && in.To < in.First || in.From > in.Last {
		return in.noneSelected("nothing")
	}
	if len(d.Tables) > 0 {
		d.Tables[0].Note("only what is between --from and --to counts; the captures %s", words.Were(in.First, in.Last))
	}
	return nil
}

// A sum makes the tables of a report that sums up profile events, the main one first.
type sum func(*profile.Set, profilewalk.Options) []*table.Table

// oneTable returns a sum with a single table.
func oneTable[S interface{ Report() *table.Table }](measure func(*profile.Set, profilewalk.Options) S) sum {
	return func(set *profile.Set, opt profilewalk.Options) []*table.Table {
		return []*table.Table{measure(set, opt).Report()}
	}
}

func copyTables(set *profile.Set, opt profilewalk.Options) []*table.Table {
	return kernel.SumCopies(set, opt).Reports()
}

// sumOf makes a report from a sum; rows names what it lists, for messages if there are none.
func sumOf(rows string, tables sum) func(*cli.Context) (Run, error) {
	return func(ctx *cli.Context) (Run, error) {
		byRank, open := ctx.Bool("by-rank"), ctx.Bool("open-ranges")
		return func(in *Reading) (*document.Document, error) {
			if err := in.needProfiles(); err != nil {
				return nil, err
			}
			list := tables(in.Profiles, profilewalk.Options{ByRank: byRank, Open: open, From: in.From, To: in.To})
			t := list[0]
			if t.Len() == 0 && in.Selected {
				return nil, in.noneSelected("no " + rows)
			}
			if t.Len() == 0 && len(t.Footnotes) == 0 {
				t.Note("no %s are in the inputs; 'sgtrace inspect' lists what is", rows)
			}
			return document.Of(list...), nil
		}, nil
	}
}

// parseKernels makes the report on kernels. It looks for possible savings only if more than the main table
// is printed.
func parseKernels(ctx *cli.Context) (Run, error) {
	main, err := sumOf("kernels", oneTable(kernel.SumKernels))(ctx)
	if err != nil {
		return nil, err
	}
	alone := printsOnly(ctx, "kernels")
	byRank := ctx.Bool("by-rank")
	return func(in *Reading) (*document.Document, error) {
		d, err := main(in)
		if err != nil || alone {
			return d, err
		}
		opt := profilewalk.Options{ByRank: byRank, From: in.From, To: in.To}
		replays := graphs.Read(in.Profiles)
		clocks := finders.SMClocks(in.Series, in.Profiles, gpu.Options{From: in.From, To: in.To})
		found := gpuloss.FindFaster(in.Profiles, replays, operators.Beside{Routed: operators.RoutedTokensOf(in.Experts), Clocks: clocks}, opt)
		kernels := d.Tables[0]
		d.Tables = nil
		d.Add(found.Report())
		d.AddMain(kernels)
		if found.Roofs.Any() || !forPeople(ctx) {
			d.Add(found.Roofs.Report())
		}
		layers := replays.Layers(opt)
		d.Add(found.Fills.Report(), layers.Report())
		if layers.Any() || !forPeople(ctx) {
			d.Add(layers.BlockReport())
		}
		d.LimitAll = ctx.IsSet("limit")
		for _, t := range d.Tables {
			if t != kernels && !d.LimitAll && forPeople(ctx) {
				t.Limit(maxOfEach)
			}
		}
		return d, nil
	}, nil
}

// maxOfEach is the maximum number of rows of each other table in text.
const maxOfEach = 10

// parseGaps makes the report on idle GPUs. --limit limits the longest gaps as well as the causes.
func parseGaps(ctx *cli.Context) (Run, error) {
	opt := gaps.Options{ByRank: ctx.Bool("by-rank"), Longest: maxKernels}
	if ctx.IsSet("limit") {
		opt.Longest = ctx.Int("limit")
	}
	return func(in *Reading) (*document.Document, error) {
		if err := in.needProfiles(); err != nil {
			return nil, err
		}
		collector := gaps.Collect(in.Profiles)
		gpu.Measure(in.Profiles, gpu.Options{From: in.From, To: in.To, Gaps: collector.Add})
		opt.From, opt.To = in.From, in.To
		if graphs.LaunchesGraphs(in.Profiles) {
			opt.Around = graphs.Read(in.Profiles).Neighbors().Around
		}
		return document.Of(collector.Measure(opt).Reports()...), nil
	}, nil
}

// listOf makes a report of tables by rank or over all ranks, each of which --limit limits.
func listOf(tables sum) func(*cli.Context) (Run, error) {
	return func(ctx *cli.Context) (Run, error) {
		byRank := ctx.Bool("by-rank")
		return func(in *Reading) (*document.Document, error) {
			if err := in.needProfiles(); err != nil {
				return nil, err
			}
			d := document.Of(tables(in.Profiles, profilewalk.Options{ByRank: byRank, From: in.From, To: in.To})...)
			d.LimitAll = true
			return d, nil
		}, nil
	}
}

// operatorTables returns tables of operators, stackTables of time by stack.
func operatorTables(set *profile.Set, opt profilewalk.Options) []*table.Table {
	return operators.Sum(set, opt).Reports()
}

func stackTables(set *profile.Set, opt profilewalk.Options) []*table.Table {
	return host.Sum(set, opt, graphs.Collect(set)).Reports()
}

// groupsChanged describes changes that affect all ranks of a group of hosts: "lateness changed on all 8
// ranks of rack r12 at 12:00:05.0".
func groupsChanged(changes *change.Changes, hosts *document.Hosts, ranks []document.Rank) (sentences []string) {
	if hosts == nil {
		return nil
	}
	for i := range changes.List {
		c := &changes.List[i]
		var places order.Groups[string, []place.Location]
		for k := range c.Shifts {
			shift := &c.Shifts[k]
			order.Add(&places, words.JoinNonEmpty(" ", shift.Stage, shift.Metric.String()), shift.Location)
		}
		for i, name := range places.Keys {
			for _, group := range hosts.Covered(places.List[i], ranks) {
				sentences = append(sentences, fmt.Sprintf("%s changed on %s at %s", name, &group, words.At(c.Time, words.TenthLayout)))
			}
		}
	}
	return sentences
}
