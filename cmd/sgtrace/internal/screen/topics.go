package screen

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/docs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// A Helper provides what topics need for printing.
type Helper struct {
	Out   io.Writer                               // for text that programs read: scripts and the man page
	Show  func(write func(io.Writer) error) error // for text that people read
	Width int                                     // of lines, in columns
	App   func() *cli.App
}

// A Topic is a topic of the help with its printing function.
type Topic struct {
	Topic commandline.Topic
	Print func(h *Helper, words []string) error
}

// All returns the topics in the order of the help.
func All() []Topic {
	return []Topic{
		{commandline.Topic{Name: "metrics", Usage: "what every number means; metrics WORD looks one up", Words: definedIn(docs.Metrics, docs.Columns)},
			words("metrics", docs.Metrics, docs.Columns, docs.Gate)},
		{commandline.Topic{Name: "findings", Usage: "everything that 'sgtrace report' looks for"},
			page("findings", findings())},
		{commandline.Topic{Name: "gate", Usage: "how scripts fail on findings and on changes"},
			page("gate", docs.Gate)},
		{commandline.Topic{Name: "agents", Usage: "how scripts and agents use the JSON"},
			page("agents", docs.Agents)},
		{commandline.Topic{Name: "skill", Usage: "a skill for agents: help skill > SKILL.md"},
			alone("skill", skill)},
		{commandline.Topic{Name: "schema", Usage: "the JSON Schema of what --format json prints"},
			verbatim("schema", docs.Schema)},
		{commandline.Topic{Name: "kernel-classes", Usage: "which kernels compute, communicate, or move memory"},
			verbatim("kernel-classes", kernelname.DefaultClasses().String())},
		{commandline.Topic{Name: "formats", Usage: "input formats, their quirks, and all messages; formats WORD", Words: definedIn(docs.Formats)},
			words("formats", docs.Formats)},
		{commandline.Topic{Name: "man", Usage: "this help, or that of a command, as a man page: man report"},
			man},
		{commandline.Topic{Name: "completion", Usage: "a completion script for bash, zsh, or fish", Words: commandline.Shells},
			func(h *Helper, args []string) error { return commandline.WriteCompletion(h.Out, args) }},
	}
}

// Known returns what package commandline needs to know about the topics.
func Known() (known []commandline.Topic) {
	return order.Each(All(), func(t Topic) commandline.Topic { return t.Topic })
}

// Find returns the topic of a name, or nil.
func Find(name string) *Topic {
	for _, t := range All() {
		if t.Topic.Name == name {
			return &t
		}
	}
	return nil
}

// definedIn returns a function that lists the words defined in pages of the documentation.
func definedIn(texts ...string) func() []string {
	return func() (words []string) {
		for _, text := range texts {
			words = append(words, Parse(text).Words()...)
		}
		return order.Distinct(words)
	}
}

// words prints a page of the documentation, or what it says about a word: a number, the code of a message,
// a table, a stage. A word that the page does not define is looked up in the others.
func words(topic, text string, others ...string) func(*Helper, []string) error {
	return func(h *Helper, words []string) error {
		page := Parse(text)
		if len(words) == 0 {
			return h.Show(func(w io.Writer) error { return page.Write(w, h.Width) })
		}
		word := strings.Join(words, " ")
		found := page.Find(word)
		for _, other := range others {
			if len(found.Sections) == 0 {
				found = Parse(other).Find(word)
			}
		}
		if len(found.Sections) == 0 {
			hint := ""
			if similar := page.similar(word); len(similar) > 0 {
				hint = "; did you mean " + strings.Join(similar, ", ") + "?"
			}
			return commandline.Usage("no word %q%s ('sgtrace help %s' prints the whole page)", word, hint, topic)
		}
		return h.Show(func(w io.Writer) error { return found.Write(w, h.Width) })
	}
}

// findings returns the list of finders.
func findings() string {
	return "# Findings\n\nWhere several rows find the same thing, the upper one leads.\n\n" + finders.Markdown(finders.All)
}

// page prints a page of the documentation without words to look up.
func page(topic, text string) func(*Helper, []string) error { return alone(topic, words(topic, text)) }

// verbatim prints a text as it is.
func verbatim(topic, text string) func(*Helper, []string) error {
	return alone(topic, func(h *Helper, _ []string) error {
		return h.Show(func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	})
}

// man prints the man page of the program, or that of a command.
func man(h *Helper, words []string) error {
	app := h.App()
	app.Setup()
	switch len(words) {
	case 0:
	case 1:
		return commandline.WriteCommandManPage(h.Out, app, words[0], commandline.Version(), commandline.Date())
	default:
		return commandline.Usage("help man takes a command, or nothing")
	}
	return commandline.WriteManPage(h.Out, app, Known(), commandline.Version(), commandline.Date())
}

// alone rejects words after a topic.
func alone(topic string, print func(*Helper, []string) error) func(*Helper, []string) error {
	return func(h *Helper, words []string) error {
		if len(words) > 0 {
			return commandline.Usage("help %s takes no arguments", topic)
		}
		return print(h, nil)
	}
}
