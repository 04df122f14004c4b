package reports

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Report is one of the reports of 'sgtrace report'.
type Report struct {
	Name string // the flag that asks for it: "kernels"
	As   string // its name in the schema, if different
	// Usage is the help of the flag: one line. If the flag takes a value, it is in backquotes.
	Usage string
	Needs Needs
	// Options are the flags that it takes besides those that all reports take. The flag of another report
	// may be an option: --kernels --by-rank.
	Options []string
	// Ignores are selection flags without effect, because they select spans while the report is about whole requests
	// or about inputs without spans. A note says so if they are given, since the summary passes its selection on to
	// every report.
	Ignores []string
	Tables  []string // tables that it may print, the main one first
	// Formats are accepted by --format in addition to the formats of every table.
	Formats []table.Format

	Events           []string // categories of the events that it walks over, in PyTorch's terms
	Arguments        []string // categories of events whose arguments it needs: sizes of copies, shapes of operators
	ArgNames         []string // the arguments of these that it needs besides the usual ones
	Attribute        bool     // attribute work to the ranges that launched it
	MatchCollectives bool     // match collectives across ranks
	// MainEvents are the events that the main table needs, if fewer; nothing else is read if only it is
	// printed.
	MainEvents []string
	// CollectiveTables need only collectives: if --table asks for one, no events are read.
	CollectiveTables []string

	// Runs says that it reads one run after another, with [Reading.EachRun].
	Runs bool

	Most      int  // default limit on the main table's rows in text; 0 is all
	OwnsLimit bool // --limit is for another table, and the report applies it

	// Parse reads the report's flags before any input is read; its errors are usage errors.
	Parse func(*cli.Context) (Run, error)
}

// Run makes a report from what was read. The program adds the schema, the inputs, and warnings unless the
// document has some.
type Run func(*Reading) (*document.Document, error)

// Needs says which inputs a report is about.
type Needs uint8

const (
	Either   Needs = iota // requests, profiles, or both
	Requests              // OTLP dumps
	Profiles              // PyTorch traces and Nsight Systems exports
)

// groups are the headings of reports in the help.
var groups = [...]string{
	Either:   "Reports on all inputs (ask for one; none is the summary):",
	Requests: "Reports on requests (OTLP dumps):",
	Profiles: "Reports on PyTorch traces and Nsight Systems exports:",
}

// A Reading is what was read and selected for a report.
type Reading struct {
	Requests    *request.Set       // nil if there are none
	Profiles    *profile.Set       // nil if there are none
	Series      *series.Set        // of logs and metrics; nil if there are none
	Flight      *recorder.InFlight // nil if there are no dumps of work in flight
	Heap        *recorder.Memory   // nil if there are no memory snapshots
	Experts     *recorder.Experts  // nil if there are no counts of tokens by expert
	From, To    trace.Time         // the selected window; 0 is no bound
	First, Last trace.Time         // bounds of everything read, selected or not; 0 is unknown
	Selected    bool               // the selection may have left something out
	Clocks      []overview.HostClock
	Inputs      []document.Input
	Diags       *trace.Diags
	// EachRun reads the inputs run by run, in order of time, and passes each run to reduce; nil if they can
	// be read only once. For a report with Runs, Requests and Profiles are nil; others read the inputs
	// again.
	EachRun func(reduce func(*OneRun)) error
	// Select and Given are the selection flags and the inputs as given, for command lines that show more.
	Select, Given []string
	// WhatIf asks what would have happened without each finding.
	WhatIf bool
}

// OneRun holds the data of inputs that were recorded at about the same time. Its tables are released after
// it has been reduced.
type OneRun struct {
	From, To trace.Time // of the inputs; 0 is unknown
	Inputs   int
	Requests *request.Set // nil if there are none
	Profiles *profile.Set // nil if there are none
}

// Drawn returns the report as a page needs it, which also shows the shapes of operators and how kernels were launched.
func (r *Report) Drawn() *Report {
	d := *r
	d.Arguments = slices.Concat(r.Arguments, operatorCategories, launchEvents)
	d.ArgNames = slices.Concat(r.ArgNames, []string{profile.ConcreteInputs}, profile.LaunchArguments)
	return &d
}

// Schema returns the schema of its documents: "sgtrace.report.kernels/v2".
func (r *Report) Schema() string { return "sgtrace.report." + cmp.Or(r.As, r.Name) + "/v2" }

// takesValue reports whether the report's flag takes a value.
func (r *Report) takesValue() bool { return strings.Contains(r.Usage, "`") }

// flag returns the flag that asks for the report.
func (r *Report) flag() cli.Flag {
	if r.takesValue() {
		return &cli.StringFlag{Name: r.Name, Usage: r.Usage, Category: groups[r.Needs]}
	}
	return &cli.BoolFlag{Name: r.Name, Usage: r.Usage, Category: groups[r.Needs], DisableDefaultText: true}
}

// OfMain reports whether the flags ask for the main table alone, in a report whose other tables need more events.
func (r *Report) OfMain(ctx *cli.Context) bool {
	return r.MainEvents != nil && printsOnly(ctx, r.Tables[0])
}

// printsOnly reports whether only the given main table is printed.
func printsOnly(ctx *cli.Context, main string) bool {
	if name := ctx.String("table"); name != "" {
		return name == main
	}
	return table.Format(ctx.String("format")) == table.FormatCSV
}

// forPeople reports whether the output is for people rather than programs.
func forPeople(ctx *cli.Context) bool {
	f := table.Format(ctx.String("format"))
	return f != table.FormatCSV && f != table.FormatJSON
}

// isGiven reports whether the report's flag is given.
func (r *Report) isGiven(ctx *cli.Context) bool {
	if r.takesValue() {
		return ctx.IsSet(r.Name)
	}
	return ctx.Bool(r.Name)
}

// Takes reports whether the report takes a flag.
func (r *Report) Takes(flag string) bool {
	switch {
	case slices.Contains(AboutRequests, flag):
		return r.Needs != Profiles
	case flag == "table":
		return len(r.Tables) > 1
	}
	return slices.Contains(r.Options, flag)
}

// NoteIgnored adds a note to the main table about the given flags that have no effect.
func (r *Report) NoteIgnored(ctx *cli.Context, d *document.Document) {
	main, err := d.MainTable()
	if err != nil {
		return
	}
	whole := "requests"
	if slices.Contains(r.Ignores, "from") {
		whole = "inputs"
	}
	for _, flag := range r.Ignores {
		if ctx.IsSet(flag) {
			main.Note("--%s has no effect: this report is about whole %s", flag, whole)
		}
	}
}

// selections are all selection flags.
var selections = slices.Concat(AboutRequests, []string{"from", "to", "host", "rank"})

// AboutRequests are the selection flags that do not apply to profiles.
var AboutRequests = []string{"rid", "room", "trace", "status", "slowest", "sample", "role", "stage", "min-dur", "level"}
