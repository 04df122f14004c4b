package commandline

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// manIntroduction begins the page, before the commands.
const manIntroduction = `.SH SYNOPSIS
.B sgtrace
.I COMMAND
.RI [ FLAGS ]
.IR INPUT ...
.SH DESCRIPTION
Reads the files that an incident in LLM serving leaves behind: OTLP dumps of request tracing,
PyTorch profiler traces, Nsight Systems exports.
It works offline, puts everything on one clock, and writes reports, web pages, and timelines for Perfetto.
.PP
Inputs are files, globs, directories, or
.B \-
for standard input. sgtrace recognizes gzip, zstd, and framed dumps by content.
Results go to standard output, everything else to standard error.
`

// manEnd follows the commands.
const manEnd = `.SH "EXIT STATUS"
.TP
.B 0
complete, or the reader of the output closed the pipe
.TP
.B 1
no usable output
.TP
.B 2
usage error
.TP
.B 3
output written, but some input was damaged or dropped
.TP
.B 4
output written, but a condition of \-\-fail\-if or a finding of \-\-fail\-on did not pass
.SH ENVIRONMENT
.TP
.B TMPDIR
directory for temporary files: data that does not fit in memory, and decompressed Nsight Systems exports. Nothing is left behind.
.TP
.BR LC_ALL ", " LC_CTYPE ", " LANG
whether text may contain more than ASCII; in the locales C and POSIX it does not.
.SH "SEE ALSO"
.BR nsys (1)
`

// manEndOfCommand ends the page of a single command.
const manEndOfCommand = `.SH "SEE ALSO"
.BR sgtrace (1)
`

// WriteManPage writes the manual page of an app, which must be set up, for man(1). It has everything in the
// help of all commands.
func WriteManPage(w io.Writer, app *cli.App, topics []Topic, version, date string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SGTRACE 1 \"%s\" \"sgtrace %s\" \"User Commands\"\n", roff(date), roff(version))
	fmt.Fprintf(&b, ".SH NAME\nsgtrace \\- %s\n%s", roff(app.Usage), manIntroduction)
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, app.Name, app.Commands)
	b.WriteString(".SH \"OTHER HELP\"\n")
	for _, t := range topics {
		fmt.Fprintf(&b, ".TP\n.B sgtrace help %s\n%s\n", roff(t.Name), roff(t.Usage))
	}
	b.WriteString(manEnd)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCommandManPage writes the manual page of a command, sgtrace-COMMAND(1).
func WriteCommandManPage(w io.Writer, app *cli.App, name, version, date string) error {
	cmd := find(app.Commands, name)
	if cmd == nil {
		return UnknownCommand(app, name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SGTRACE\\-%s 1 \"%s\" \"sgtrace %s\" \"User Commands\"\n", roff(strings.ToUpper(cmd.Name)), roff(date), roff(version))
	fmt.Fprintf(&b, ".SH NAME\nsgtrace\\-%s \\- %s\n.SH DESCRIPTION\n", roff(cmd.Name), roff(cmd.Usage))
	manCommands(&b, app.Name, []*cli.Command{cmd})
	b.WriteString(manEndOfCommand)
	_, err := io.WriteString(w, b.String())
	return err
}

// manCommands describes commands; above has the words before them.
func manCommands(b *strings.Builder, above string, commands []*cli.Command) {
	for _, cmd := range commands {
		if cmd.Hidden {
			continue
		}
		name := above + " " + cmd.Name
		if len(cmd.Subcommands) > 0 {
			manCommands(b, name, cmd.Subcommands)
			continue
		}
		fmt.Fprintf(b, ".SS \"%s\"\n.B %s\n", roff(name), roff(name))
		if cmd.ArgsUsage != "" {
			fmt.Fprintf(b, ".RI [ FLAGS ]\n.I %s\n", roff(cmd.ArgsUsage))
		}
		about, examples, _ := strings.Cut(cmd.Description, "\nExamples:\n")
		fmt.Fprintf(b, ".PP\n%s.\n", roff(strings.ToUpper(cmd.Usage[:1])+cmd.Usage[1:]))
		b.WriteString(".PP\n")
		manText(b, about)
		manFlags(b, cmd.VisibleFlags())
		if examples != "" {
			fmt.Fprintf(b, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", roff(examples))
		}
	}
}

// manFlags lists flags by category, in the order of the help.
func manFlags(b *strings.Builder, flags []cli.Flag) {
	names, byCategory := flagsByCategory(flags)
	for _, category := range names {
		fmt.Fprintf(b, ".PP\n.I %s\n", roff(category))
		for _, f := range byCategory[category] {
			head, what := describeFlag(f)
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(head)), roff(what))
		}
	}
}

// manText writes paragraphs; indented lines stay as they are.
func manText(b *strings.Builder, text string) {
	preformatted := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch indented := strings.HasPrefix(line, "  "); {
		case strings.TrimSpace(line) == "":
			b.WriteString(".PP\n")
			continue
		case indented && !preformatted:
			b.WriteString(".nf\n")
			preformatted = true
		case !indented && preformatted:
			b.WriteString(".fi\n")
			preformatted = false
		}
		b.WriteString(roff(line) + "\n")
	}
	if preformatted {
		b.WriteString(".fi\n")
	}
}

// roff escapes text. An unescaped leading dot would make a line a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "\n.", "\n\\&.").Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
