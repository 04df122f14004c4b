package commandline

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/urfave/cli/v2"
)

// CompleteCommand is run by completion scripts: it prints completions of the last word, which may be empty.
// It is not meant for people, and not listed.
const CompleteCommand = "__complete"

// completions are shell scripts that ask the program for completions, so that commands, flags, and their
// values match the help. The program prints one completion per line, with a description after a tab. If it
// prints none, the shell completes file names.
var completions = map[string]string{
	"bash": `# source <(sgtrace help completion bash)
_sgtrace() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _sgtrace sgtrace
`,
	"zsh": `#compdef sgtrace
# source <(sgtrace help completion zsh), or a file _sgtrace in a folder of $fpath
_sgtrace() {
  local -a lines shown
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${lines[1]}" ]]; then
    shown=("${(@)lines/$'\t'/  }")
    compadd -l -d shown -- "${(@)lines%%$'\t'*}"
  else
    _files
  fi
}
if [[ "${funcstack[1]}" == _sgtrace ]]; then _sgtrace "$@"; else compdef _sgtrace sgtrace; fi
`,
	"fish": `# sgtrace help completion fish | source
function __sgtrace
  set -l words (commandline -opc) (commandline -ct)
  set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c sgtrace -f -a '(__sgtrace)'
`,
}

// Shells returns the shells that have completion.
func Shells() []string { return slices.Sorted(maps.Keys(completions)) }

// WriteCompletion writes the script for the shell that is the argument of 'sgtrace help completion'.
func WriteCompletion(w io.Writer, args []string) error {
	if len(args) != 1 || completions[args[0]] == "" {
		return Usage("help completion takes a shell: %s", strings.Join(Shells(), ", "))
	}
	_, err := io.WriteString(w, completions[args[0]])
	return err
}

// A Completer completes command lines of an app.
type Completer struct {
	App    *cli.App
	Topics []Topic
	// Values returns the values that a flag of a command takes after some other flags, as far as they are
	// known without an input.
	Values func(command, flag string, behind []string) []string
}

// A choice is a completion with its description.
type choice struct{ word, what string }

// Complete writes the completions of the last word of a command line, which lacks the name of the program.
func (c *Completer) Complete(w io.Writer, words []string) error {
	for _, choice := range c.choices(words) {
		line := choice.word
		if choice.what != "" {
			line += "\t" + choice.what
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// choices returns commands, help topics, flags, or flag values, in the order of the help; none if a file is
// expected, or the choices are unknown.
func (c *Completer) choices(words []string) []choice {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	head := "" // the flag before "=" in the same word
	if flag, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(flag, "-") {
		before, last, head = append(slices.Clone(before), flag), value, flag+"="
	} else if last == "=" { // bash splits "--flag=value" into three words
		last = ""
	}
	var all []choice
	if len(before) > 0 && before[0] == "help" {
		all = c.helpChoices(before[1:])
	} else {
		all = c.choicesAt(placeAfter(c.App, before), last)
	}
	all = slices.DeleteFunc(all, func(it choice) bool { return !strings.HasPrefix(it.word, last) })
	for i := range all {
		all[i].word = head + all[i].word
	}
	return all
}

// helpChoices returns the completions after 'sgtrace help' and some words.
func (c *Completer) helpChoices(words []string) (all []choice) {
	if len(words) == 0 {
		all = commandChoices(c.App.Commands)
		for _, t := range c.Topics {
			all = append(all, choice{t.Name, t.Usage})
		}
		return all
	}
	if len(words) > 1 {
		return nil
	}
	i := slices.IndexFunc(c.Topics, func(t Topic) bool { return t.Name == words[0] && t.Words != nil })
	if i < 0 {
		return commandChoices(placeAfter(c.App, words).commands)
	}
	for _, word := range c.Topics[i].Words() {
		if !strings.ContainsAny(word, " \t") { // a shell would need quotes
			all = append(all, choice{word: word})
		}
	}
	return all
}

// A place is a position on a command line.
type place struct {
	command  string         // its command, the last of the command's words
	commands []*cli.Command // candidates for the next word
	flags    []cli.Flag
	flag     string   // the flag whose value is next; "" is none
	behind   []string // flags before it, without dashes
	inputs   int      // number of arguments of the command so far
}

// placeAfter returns the place after some words.
func placeAfter(app *cli.App, words []string) place {
	p := place{commands: app.Commands, flags: app.Flags}
	for _, word := range words {
		name := strings.TrimLeft(word, "-")
		switch sub := find(p.commands, word); {
		case word == "=":
		case p.flag != "":
			p.flag = "" // this is its value
		case word == "-": // standard input
			p.inputs++
		case name != word && valueFlags(p.flags)[name]:
			p.flag = name
			p.behind = append(p.behind, name)
		case name != word:
			p.behind = append(p.behind, name)
		case sub != nil && p.inputs == 0:
			p.command, p.commands, p.flags = sub.Name, sub.Subcommands, sub.Flags
		default:
			p.inputs++
		}
	}
	return p
}

// Positionals returns the command that a command line calls (the last of the command's words), and the
// number of its arguments besides flags. A flag at the end without its value counts as an argument.
func Positionals(app *cli.App, args []string) (command string, n int) {
	p := placeAfter(app, args[min(1, len(args)):])
	if p.flag != "" {
		p.inputs++
	}
	return p.command, p.inputs
}

// choicesAt returns the choices for a place; it returns flags only if last begins like one.
func (c *Completer) choicesAt(p place, last string) (all []choice) {
	switch {
	case p.flag != "":
		for _, value := range c.Values(p.command, p.flag, p.behind) {
			all = append(all, choice{word: value})
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range append(p.flags[:len(p.flags):len(p.flags)], cli.HelpFlag) {
			what := strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")
			for _, name := range f.Names() {
				all = append(all, choice{Dashed(name), what})
			}
		}
	case p.inputs == 0:
		all = commandChoices(p.commands)
	}
	return all
}

func commandChoices(commands []*cli.Command) (all []choice) {
	return order.Each(commands, func(c *cli.Command) choice { return choice{c.Name, c.Usage} })
}
