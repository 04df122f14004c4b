package main

import (
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/inspect"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/request"
)

// helpCommand replaces the library's help command, which knows neither topics nor subcommands.
func (c *command) helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Aliases:   []string{"h"},
		Usage:     "explain a command, a number, a format, or a message",
		ArgsUsage: "[COMMAND | TOPIC [WORD]]",
		Description: `Topics are metrics, findings, gate, agents, schema, kernel-classes, formats,
man, and completion.
A WORD is the name of a number or a column, the code of a message, a table, or
a stage.

Examples:
  sgtrace help convert otel2perfetto
  sgtrace help metrics lateness
  sgtrace help formats otlp-truncated
  sgtrace help completion bash`,
		Action: func(ctx *cli.Context) error { return c.help(ctx.Args().Slice()) },
	}
}

// help prints help about all commands, a command, or a topic.
func (c *command) help(words []string) error {
	if len(words) > 0 {
		if topic := screen.Find(words[0]); topic != nil {
			c.screen.Pager = screen.PagerFor(c.out, c.env)
			return topic.Print(c.helper(), words[1:])
		}
	}
	app := c.app()
	app.Setup()
	if err := commandline.UnknownPage(app, words); err != nil {
		return err
	}
	if len(words) == 1 && (words[0] == "help" || words[0] == "h") {
		commandline.WriteHelp(&c.pages, app.Command("help"))
		return nil
	}
	return app.Run(append(append([]string{app.Name}, words...), "--help"))
}

// helper returns a Helper that prints topics.
func (c *command) helper() *screen.Helper {
	width := commandline.Width
	if w := screen.Width(c.out, c.env); w > 0 {
		width = min(w, width)
	}
	return &screen.Helper{Out: c.out, Width: width, Show: c.show, App: c.app}
}

// complete prints the completions of the last of the words.
func (c *command) complete(words []string) error {
	app := c.app()
	app.Setup()
	completer := commandline.Completer{App: app, Topics: screen.Known(), Values: flagValues}
	return completer.Complete(c.out, words)
}

// flagValues returns the values that a flag of a command takes after the flags in behind, as far as they
// are known without an input.
func flagValues(command, flag string, behind []string) (values []string) {
	switch flag {
	case "format":
		for _, f := range table.Formats {
			values = append(values, string(f))
		}
		if command == "report" {
			values = append(values, string(table.FormatFolded))
		}
	case "fail-on", "mute":
		values = finders.Kinds()
	case "by":
		for _, d := range requests.Dimensions {
			values = append(values, d.Name)
		}
	case "metric":
		for _, m := range tail.Metrics {
			values = append(values, m.Name)
		}
	case "role":
		for role := request.Unified; role <= request.Other; role++ {
			values = append(values, role.String())
		}
	case "status":
		for status := request.Finished; status <= request.Unfinished; status++ {
			values = append(values, status.String())
		}
	case "cat":
		values = slices.Concat(reports.AllEvents, []string{"cpu_op", "python_function", "nvtx"})
	case "fail-if":
		for _, m := range gate.Metrics() {
			if !strings.Contains(m, ".NAME.") {
				values = append(values, m+">+5%")
			}
		}
	case "sort":
		if command == "requests" {
			values = requests.List(new(request.Set), nil).ColumnNames()
		} else if r := reports.Asked(behind); r != nil {
			values = r.Columns()
		}
	case "table":
		if r := reports.Asked(behind); command == "report" && r != nil {
			return r.Tables
		}
		values = map[string][]string{"report": reports.TableNames(), "inspect": inspect.Tables, "diff": {"diff", "diff.setup", "diff.load", "diff.percentiles", "diff.captures", "gate"}}[command]
	default:
		values = map[string][]string{
			"view": {"both", "thread", "request"}, "layout": {"both", "ranks", "compare"}, "args": {"all", "min", "none"},
			"tail": {"p90", "p95", "p99"}, "slowest": {"20:e2e", "20:ttft", "20:itl"}, "level": {"1", "2", "3"}, "classes": {"hta"}, "color": {"auto", "always", "never"},
		}[flag]
	}
	return values
}

// versionCommand prints the same line as --version, or the licenses.
func (c *command) versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print the version, the commit, and the version of Go that built it",
		ArgsUsage: " ",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "licenses", DisableDefaultText: true, Usage: "print the licenses of sgtrace and of all that it is built of"}},
		Action: func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return commandline.Usage("version takes no arguments")
			}
			if ctx.Bool("licenses") {
				_, err := io.WriteString(c.out, commandline.Licenses)
				return err
			}
			cli.ShowVersion(ctx)
			return nil
		},
	}
}
