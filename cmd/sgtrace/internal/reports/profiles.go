package reports

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

var (
	errNoProfiles = errors.New("no input is a PyTorch trace or an Nsight Systems export")
	// errNothingSelected is for what profilers recorded, of which reports hold no list.
	errNothingSelected = errors.New("the selection leaves nothing; 'sgtrace inspect' shows hosts, ranks and times")
)

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

// listing makes a report that sums up events of profilers and is one table; rows is what
// it lists, for inputs that have none.
func listing[S interface{ Report() *table.Table }](rows string, sum func(*profile.Set, walk.Options) S) func(*cli.Context) (Run, error) {
	return func(ctx *cli.Context) (Run, error) {
		byRank, open := ctx.Bool("by-rank"), ctx.Bool("open-ranges")
		return func(in *Reading) (*document.Document, error) {
			if err := in.needProfiles(); err != nil {
				return nil, err
			}
			t := sum(in.Profiles, walk.Options{ByRank: byRank, Open: open, From: in.From, To: in.To}).Report()
			if t.Len() == 0 && in.Selected {
				return nil, errNothingSelected
			}
			if t.Len() == 0 && len(t.Footnotes) == 0 {
				t.Note("no %s are in the inputs; 'sgtrace inspect' lists what is", rows)
			}
			return document.Of(t), nil
		}, nil
	}
}
