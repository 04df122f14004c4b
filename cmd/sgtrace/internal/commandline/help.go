package commandline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/urfave/cli/v2"
)

// appHelp is the page of "sgtrace help". It fits on a screen.
const appHelp = `sgtrace - {{.Usage}}

  Reads the files that an incident leaves behind (server logs, metrics, OTLP
  dumps of request tracing, PyTorch profiler traces, Nsight Systems exports),
  puts them on one clock, and writes reports, web pages, and timelines for
  Perfetto. Works offline.

Usage:
  sgtrace COMMAND [FLAGS] INPUT...

Commands:
{{range .VisibleCommands}}  {{printf "%-12s" .Name}}{{.Usage}}
{{end}}
Other help:
{{range topics}}  {{printf "%-16s" .Name}}{{.Usage}}
{{end}}
Inputs are files, globs, directories, or - for standard input, recognized by
content. 'sgtrace help COMMAND' has examples. Every message about an input ends
with a [code]: 'sgtrace help formats CODE' says what to do about it.

Exit status: 0 complete, 1 no usable output, 2 usage error,
             3 output written, but some input was damaged or dropped,
             4 output written, but --fail-if or --fail-on did not pass.
`

// commandHelp is the page of "sgtrace help COMMAND".
const commandHelp = `{{printf "%s - %s" .HelpName .Usage | fill}}

Usage:
  {{.HelpName}}{{if .VisibleCommands}} COMMAND{{end}}{{if .ArgsUsage}} [FLAGS] {{.ArgsUsage}}{{end}}
{{with .Description}}
{{.}}
{{end}}{{with .VisibleCommands}}
Commands:
{{range .}}  {{printf "%-16s  " .Name}}{{.Usage}}
{{end}}{{end}}{{flags .VisibleFlags}}`

// A Topic is something that 'sgtrace help' explains besides commands.
type Topic struct {
	Name, Usage string
	// Words are the entries that can be looked up in the topic; nil if there are none.
	Words func() []string
}

// Prepare makes an app and its commands use the pages and messages of this package: the library's pages do
// not fit a terminal. all returns the app with all commands, for messages about other commands, and topics
// returns the help topics. The pages of all apps list the topics passed last.
func Prepare(app *cli.App, all func() *cli.App, topics func() []Topic) {
	app.Metadata = map[string]any{helpTopics: topics}
	app.CustomAppHelpTemplate = appHelp
	app.OnUsageError = func(ctx *cli.Context, err error, _ bool) error { return wrongFlag(ctx, all, err) }
	prepare(app.Commands, app.OnUsageError)
	cli.HelpPrinter = func(w io.Writer, page string, data any) { printHelp(w, page, data, topics) }
}

func prepare(commands []*cli.Command, wrong cli.OnUsageErrorFunc) {
	for _, c := range commands {
		c.CustomHelpTemplate, c.OnUsageError = commandHelp, wrong
		c.HideHelpCommand = true // "help" may be the name of an input, and 'sgtrace help' is ours
		prepare(c.Subcommands, wrong)
	}
}

// A PageWriter writes the library's pages and keeps the error, which the library ignores.
type PageWriter struct {
	W   io.Writer
	Err error // the first error
}

func (p *PageWriter) Write(b []byte) (int, error) {
	n, err := p.W.Write(b)
	p.Err = cmp.Or(p.Err, err)
	return n, err
}

// WriteHelp writes the page of a command. The library would take "help help" for the program's help.
func WriteHelp(w io.Writer, c *cli.Command) { printHelp(w, commandHelp, c, nil) }

func printHelp(w io.Writer, page string, data any, topics func() []Topic) {
	cli.HelpPrinterCustom(w, page, data, map[string]any{
		"fill":   func(text string) string { return fill(text, 0) },
		"flags":  flagsText,
		"topics": topics,
	})
}

// Width is the width of pages, in characters.
const Width = 80

// helpIndent is the indent of the flags' descriptions.
const helpIndent = 24

// flagsText describes flags by category, in order of declaration.
func flagsText(flags []cli.Flag) string {
	names, byCategory := flagsByCategory(flags)
	var b strings.Builder
	for _, category := range names {
		fmt.Fprintf(&b, "\n%s\n", category)
		for _, f := range byCategory[category] {
			b.WriteString(flagText(f))
		}
	}
	return b.String()
}

// flagsByCategory returns flags by category; names has the categories by first appearance.
func flagsByCategory(flags []cli.Flag) (names []string, byCategory map[string][]cli.DocGenerationFlag) {
	byCategory = map[string][]cli.DocGenerationFlag{}
	for _, f := range flags {
		category := "Flags:"
		if c, ok := f.(cli.CategorizableFlag); ok && c.GetCategory() != "" {
			category = c.GetCategory()
		}
		if byCategory[category] == nil {
			names = append(names, category)
		}
		byCategory[category] = append(byCategory[category], f.(cli.DocGenerationFlag))
	}
	return names, byCategory
}

// describeFlag returns the names of a flag followed by its value, which its usage has in backquotes, and
// the usage.
func describeFlag(f cli.DocGenerationFlag) (head, what string) {
	names := order.Each(f.Names(), Dashed)
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) })
	head = strings.Join(names, ", ") // such as -o, --output
	what = f.GetUsage()
	if f.TakesValue() {
		head += " " + strings.Split(what+"`VALUE`", "`")[1]
	}
	what = strings.ReplaceAll(what, "`", "")
	if s, ok := f.(cli.DocGenerationSliceFlag); ok && s.IsSliceFlag() {
		what += " (repeatable)"
	}
	if b, ok := f.(*cli.BoolFlag); !ok || !b.DisableDefaultText {
		if value := strings.Trim(f.GetDefaultText(), `"`); value != "" {
			what += " (default: " + value + ")"
		}
	}
	return head, what
}

// flagText formats a flag for the help of a command.
func flagText(f cli.DocGenerationFlag) string {
	head, what := describeFlag(f)
	head = "  " + head
	body := fill(what, helpIndent) + "\n"
	if len(head) > helpIndent-2 {
		return head + "\n" + body
	}
	return head + body[len(head):]
}

// fill wraps text into lines with the given indent.
func fill(text string, indent int) string {
	margin := strings.Repeat(" ", indent)
	line, lines := margin, ""
	for word := range strings.FieldsSeq(text) {
		if line != margin {
			if len(line)+1+len(word) > Width {
				lines += line + "\n"
				line = margin
			} else {
				line += " "
			}
		}
		line += word
	}
	return lines + line
}
