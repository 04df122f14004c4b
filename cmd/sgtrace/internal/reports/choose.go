package reports

import (
	"cmp"
	"flag"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Choose returns the report that the flags ask for, or else the summary. Two reports at once are a usage
// error, and so is a flag that the report does not take; either error names both.
func Choose(ctx *cli.Context) (*Report, error) {
	r, err := askedFor(ctx)
	if err != nil {
		return nil, err
	}
	set := ctx.LocalFlagNames() // IsSet searches all flags each time
	given := slices.DeleteFunc(Refusable(), func(name string) bool { return !slices.Contains(set, name) })
	for _, flag := range given {
		switch {
		case r.Takes(flag):
		case r.isGiven(ctx):
			return nil, commandline.Usage("%s does not take %s; %s", commandline.Dashed(r.Name), commandline.Dashed(flag), takers(flag))
		default:
			return nil, noReportTakes(given)
		}
	}
	if name := ctx.String("table"); ctx.IsSet("table") && !slices.Contains(r.Tables, name) {
		return nil, commandline.Usage("--table %q%s --%s has %s", name, cmp.Or(similar.Hint(name, r.Tables), ":"), r.Name, strings.Join(r.Tables, ", "))
	}
	return r, nil
}

// askedFor returns the report whose flag is given. If several are given, it is the one that takes the other
// flags as options.
func askedFor(ctx *cli.Context) (*Report, error) {
	asked := order.Only(All, func(r *Report) bool { return r.isGiven(ctx) })
	if len(asked) == 0 {
		return All[0], nil
	}
	for _, r := range asked {
		if !slices.ContainsFunc(asked, func(other *Report) bool { return other != r && !r.Takes(other.Name) }) {
			return r, nil
		}
	}
	for _, other := range asked[1:] {
		if !other.Takes(asked[0].Name) {
			return nil, commandline.Usage("--%s and --%s are two reports; ask for one at a time", asked[0].Name, other.Name)
		}
	}
	return nil, commandline.Usage("--%s and --%s are two reports; ask for one at a time", asked[1].Name, asked[2].Name)
}

// Asked returns the report that some flags, without their dashes, ask for; nil if there is none.
func Asked(flags []string) *Report {
	var asked *Report
	for _, r := range All {
		if slices.Contains(flags, r.Name) && (asked == nil || r.Takes(asked.Name)) {
			asked = r
		}
	}
	return asked
}

// Columns returns the columns of the main table, for sorting: those that it has without any inputs.
func (r *Report) Columns() []string {
	flags := flag.NewFlagSet(r.Name, flag.ContinueOnError)
	flags.String("by", "stage", "")
	run, err := r.Parse(cli.NewContext(nil, flags, nil))
	if err != nil {
		return nil
	}
	in := &Reading{}
	if r.Needs != Profiles {
		in.Requests = &request.Set{Syms: trace.NewSymbols()}
	}
	if r.Needs != Requests {
		in.Profiles = &profile.Set{Syms: trace.NewSymbols()}
	}
	d, err := run(in)
	if err != nil {
		return nil
	}
	for _, t := range d.Tables {
		if t.Name() == d.Main {
			return t.ColumnNames()
		}
	}
	return nil
}

// noReportTakes returns the error about options given without a report that takes them: "--limit needs one
// of --latency, --by-stage and --tail; --metric needs --tail".
func noReportTakes(options []string) error {
	var parts []string
	for _, flag := range options {
		takers := takersOf(flag)
		needs := " needs one of "
		if len(takers) == 1 {
			needs = " needs "
		}
		parts = append(parts, commandline.Dashed(flag)+needs+listed(dashedAll(takers)))
	}
	return commandline.Usage("%s", strings.Join(parts, "; "))
}

// takersOf returns the names of the reports that take a flag.
func takersOf(flag string) (names []string) {
	for _, r := range All {
		if r.Takes(flag) {
			names = append(names, r.Name)
		}
	}
	return names
}

// takers says which reports take a flag: "--tail takes --metric".
func takers(flag string) string {
	names, verb := takersOf(flag), " take "
	if len(names) == 1 {
		verb = " takes "
	}
	return listed(dashedAll(names)) + verb + commandline.Dashed(flag)
}

func dashedAll(names []string) []string {
	return order.Each(names, commandline.Dashed)
}

// listed returns "--a", "--a and --b", or "--a, --b and --c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Refusable returns the flags that some reports do not take, besides those of reports.
func Refusable() []string {
	names := order.Each(options(), func(o cli.Flag) string { return o.Names()[0] })
	return slices.Concat(names, AboutRequests)
}
