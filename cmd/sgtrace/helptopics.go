package main

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/docs"
	"github.com/sgtrace/sgtrace/internal/manual"
	"github.com/sgtrace/sgtrace/profile"
)

// A helpTopic is a topic of the help, and how it is printed.
type helpTopic struct {
	commandline.Topic
	print func(c *command, args []string) error
}

// helpTopics returns the topics in the order of the help.
func helpTopics() []helpTopic {
	return []helpTopic{
		{commandline.Topic{Name: "metrics", Usage: "what every number means; metrics WORD looks one up", Words: definedIn(docs.Metrics)},
			(*command).helpMetrics},
		{commandline.Topic{Name: "findings", Usage: "everything that 'sgtrace report' looks for"},
			helpPage("findings", findingsPage())},
		{commandline.Topic{Name: "gate", Usage: "how scripts fail on findings and on changes"},
			helpPage("gate", docs.Gate)},
		{commandline.Topic{Name: "agents", Usage: "how scripts and agents use the JSON"},
			helpPage("agents", docs.Agents)},
		{commandline.Topic{Name: "schema", Usage: "the JSON Schema of what --format json prints"},
			(*command).helpSchema},
		{commandline.Topic{Name: "kernel-classes", Usage: "which kernels compute, communicate, or move memory"},
			(*command).helpKernelClasses},
		{commandline.Topic{Name: "formats", Usage: "input formats, their quirks, and all messages; formats WORD", Words: definedIn(docs.Formats)},
			(*command).helpFormats},
		{commandline.Topic{Name: "man", Usage: "this help as a man page: sgtrace help man >sgtrace.1"},
			(*command).helpMan},
		{commandline.Topic{Name: "completion", Usage: "a completion script for bash, zsh, or fish", Words: commandline.Shells},
			(*command).helpCompletion},
	}
}

// definedIn returns what lists the words that a page of the documentation defines.
func definedIn(text string) func() []string {
	return func() []string { return manual.Parse(text).Words() }
}

// topics returns what package commandline has to know of the topics.
func topics() (all []commandline.Topic) {
	for _, t := range helpTopics() {
		all = append(all, t.Topic)
	}
	return all
}

func findTopic(name string) *helpTopic {
	for _, t := range helpTopics() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}

// helpCommand is in the place of that of the library, which knows neither topics nor
// commands below commands.
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

// help prints what it is asked for: all commands, a command, or a topic.
func (c *command) help(words []string) error {
	if len(words) > 0 {
		if topic := findTopic(words[0]); topic != nil {
			c.screen.Pager = screen.PagerFor(c.out, c.env)
			return topic.print(c, words[1:])
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

// helpMetrics prints docs/METRICS.md, or what defines a word there.
func (c *command) helpMetrics(words []string) error {
	return c.printManual("metrics", docs.Metrics, words)
}

// findingsPage is the list of finders.
func findingsPage() string {
	return "# Findings\n\nWhere several rows find the same thing, the upper one leads.\n\n" + finders.Markdown(finders.All)
}

// helpPage prints a page of the documentation that has no words to look up.
func helpPage(topic, text string) func(*command, []string) error {
	return func(c *command, args []string) error {
		if len(args) > 0 {
			return commandline.Usage("help %s takes no arguments", topic)
		}
		return c.printManual(topic, text, nil)
	}
}

// helpFormats prints docs/FORMATS.md, or what explains a word there: the code of a
// message, a table, a stage.
func (c *command) helpFormats(words []string) error {
	return c.printManual("formats", docs.Formats, words)
}

// printManual prints a page of the documentation, or what it says about a word.
func (c *command) printManual(topic, text string, words []string) error {
	page := manual.Parse(text)
	width := commandline.Width
	if w := screen.Width(c.out, c.env); w > 0 && w < width {
		width = w
	}
	if len(words) == 0 {
		return c.show(func(w io.Writer) error { return page.Write(w, width) })
	}
	word := strings.Join(words, " ")
	found := page.Find(word)
	if len(found.Sections) == 0 {
		hint := ""
		if similar := page.Similar(word); len(similar) > 0 {
			hint = "; did you mean " + strings.Join(similar, ", ") + "?"
		}
		return commandline.Usage("no word %q%s ('sgtrace help %s' prints the whole page)", word, hint, topic)
	}
	return c.show(func(w io.Writer) error { return found.Write(w, width) })
}

func (c *command) helpSchema(args []string) error {
	if len(args) > 0 {
		return commandline.Usage("help schema takes no arguments")
	}
	return c.showText(docs.Schema)
}

func (c *command) helpKernelClasses(args []string) error {
	if len(args) > 0 {
		return commandline.Usage("help kernel-classes takes no arguments")
	}
	return c.showText(profile.DefaultClasses().String())
}

func (c *command) showText(text string) error {
	return c.show(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func (c *command) helpCompletion(args []string) error {
	return commandline.WriteCompletion(c.out, args)
}

func (c *command) helpMan(args []string) error {
	if len(args) > 0 {
		return commandline.Usage("help man takes no arguments")
	}
	app := c.app()
	app.Setup()
	return commandline.WriteManPage(c.out, app, topics(), version(), versionDate())
}

// complete prints what may stand in the place of the last of some words.
func (c *command) complete(app *cli.App, words []string) error {
	completer := commandline.Completer{App: app, Topics: topics(), Values: flagValues}
	return completer.Complete(c.out, words)
}
