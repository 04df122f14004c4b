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

// A Report is one that 'sgtrace report' prints.
type Report struct {
	Name string // of the flag that asks for it: "kernels"
	As   string // what its schema calls it, if not by its name
	// Usage is the help of the flag: one line. A word in backquotes is a
	// value that the flag takes.
	Usage string
	Needs Needs
	// Options are the flags that it takes besides those that all reports take. The flag
	// of another report may be an option: --kernels --by-rank.
	Options []string
	// Ignores are selection flags that change nothing, since they choose spans and the
	// report is about whole requests, or about inputs without spans. It says so when they are given: the summary hands
	// its selection on to every report.
	Ignores []string
	Tables  []string // names of the tables that it may print, the main one first
	// Formats are those of --format besides the ones that every table has.
	Formats []table.Format
	NoMain  bool // no table matters more: for CSV, --table must choose one

	Events           []string // categories of events that it walks over, in PyTorch's terms
	Arguments        []string // categories of events whose arguments it needs: sizes of copies, shapes of operators
	ArgNames         []string // of these, those that it needs besides the usual ones
	Attribute        bool     // work is attributed to the ranges that launched it
	MatchCollectives bool     // collectives are matched across ranks
	// MainEvents are those that the main table alone needs, where that is less: nothing else is read
	// where only it is printed.
	MainEvents []string
	// CollectiveTables are tables that are made of collectives alone: where --table asks for one, no
	// event is read.
	CollectiveTables []string

	// Runs tells that it looks at one run after another, by [Reading.EachRun].
	Runs bool

	Most      int  // rows of the main table that people see unless told otherwise; 0 is all
	OwnsLimit bool // --limit is about rows of another table, and the report does it

	// Parse reads its flags before anything else is read; errors are of the command line.
	Parse func(*cli.Context) (Run, error)
}

// Run makes a report of what was read. The program adds the schema, the inputs, and
// warnings unless the document has some.
type Run func(*Reading) (*document.Document, error)

// Needs is which inputs a report is about.
type Needs uint8

const (
	Either   Needs = iota // requests, profiles or both
	Requests              // OTLP dumps
	Profiles              // PyTorch traces and Nsight Systems exports
)

// groups are the headings of reports in the help, and what the page says of them.
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
	Flight      *recorder.InFlight // nil if there are no dumps of what is in flight
	Heap        *recorder.Memory   // nil if there are no snapshots of memory
	Experts     *recorder.Experts  // nil if there are no counts of tokens by expert
	From, To    trace.Time         // selected; 0 is no bound
	First, Last trace.Time         // bounds of what was read, selected or not; 0 is unknown
	Selected    bool               // the selection may have left something out
	Clocks      []overview.HostClock
	Inputs      []document.Input
	Diags       *trace.Diags
	// EachRun reads the inputs of one run after another, in the order of time, and gives each to
	// reduce; nil if they can be read only once. Of a report that has Runs, Requests and Profiles are
	// nil; others read inputs again.
	EachRun func(reduce func(*OneRun)) error
	// Select and Given are the selection flags and the inputs as they were given, for
	// command lines that show more.
	Select, Given []string
	// WhatIf asks what would have been without each finding.
	WhatIf bool
}

// OneRun holds the data of inputs that were recorded at about the same time. Its tables are
// gone once it has been reduced.
type OneRun struct {
	From, To trace.Time // of the inputs; 0 is unknown
	Inputs   int
	Requests *request.Set // nil if there are none
	Profiles *profile.Set // nil if there are none
}

// Drawn returns the report as a page needs it, which has the shapes of operators and how kernels were launched, too.
func (r *Report) Drawn() *Report {
	d := *r
	d.Arguments = slices.Concat(r.Arguments, operatorCategories, launchEvents)
	d.ArgNames = slices.Concat(r.ArgNames, []string{profile.ConcreteInputs}, profile.LaunchArguments)
	return &d
}

// Schema returns the schema of its documents: "sgtrace.report.kernels/v2".
func (r *Report) Schema() string { return "sgtrace.report." + cmp.Or(r.As, r.Name) + "/v2" }

// takesValue reports whether the flag of the report has one.
func (r *Report) takesValue() bool { return strings.Contains(r.Usage, "`") }

// flag returns the flag that asks for the report.
func (r *Report) flag() cli.Flag {
	if r.takesValue() {
		return &cli.StringFlag{Name: r.Name, Usage: r.Usage, Category: groups[r.Needs]}
	}
	return &cli.BoolFlag{Name: r.Name, Usage: r.Usage, Category: groups[r.Needs], DisableDefaultText: true}
}

// OfMain reports whether the flags ask for the main table alone, of a report whose others need more.
func (r *Report) OfMain(ctx *cli.Context) bool {
	return r.MainEvents != nil && printsOnly(ctx, r.Tables[0])
}

// printsOnly reports whether of a report with a main table only that is printed.
func printsOnly(ctx *cli.Context, main string) bool {
	if name := ctx.String("table"); name != "" {
		return name == main
	}
	return table.Format(ctx.String("format")) == table.FormatCSV
}

// forPeople reports whether people read what is printed.
func forPeople(ctx *cli.Context) bool {
	f := table.Format(ctx.String("format"))
	return f != table.FormatCSV && f != table.FormatJSON
}

// isGiven reports whether its flag is given.
func (r *Report) isGiven(ctx *cli.Context) bool {
	if r.takesValue() {
		return ctx.IsSet(r.Name)
	}
	return ctx.Bool(r.Name)
}

// Takes reports whether it understands a flag.
func (r *Report) Takes(flag string) bool {
	switch {
	case slices.Contains(AboutRequests, flag):
		return r.Needs != Profiles
	case flag == "table":
		return len(r.Tables) > 1
	}
	return slices.Contains(r.Options, flag)
}

// NoteIgnored says below the main table which of the given flags change nothing.
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

// Selections are all selection flags.
var selections = slices.Concat(AboutRequests, []string{"from", "to", "host", "rank"})

// AboutRequests are the selection flags that say nothing about what profilers recorded.
var AboutRequests = []string{"rid", "room", "trace", "status", "slowest", "sample", "role", "stage", "min-dur", "level"}
