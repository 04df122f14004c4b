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

// CompleteCommand is run by the scripts of shells: it prints what may stand in the
// place of the last word, which may be empty. It is no command of people and not listed.
const CompleteCommand = "__complete"

// completions are scripts that ask the program what may come next, so that commands,
// flags and their values are those of the help. It answers with a line each, with what it
// is behind a tab. Where it has nothing to say, names of files are offered.
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

// Shells returns the shells that command lines are completed in.
func Shells() []string { return slices.Sorted(maps.Keys(completions)) }

// WriteCompletion writes the script of the shell that the arguments of 'sgtrace help
// completion' name.
func WriteCompletion(w io.Writer, args []string) error {
	if len(args) != 1 || completions[args[0]] == "" {
		return Usage("help completion takes a shell: %s", strings.Join(Shells(), ", "))
	}
	_, err := io.WriteString(w, completions[args[0]])
	return err
}

// A Completer knows what may stand on a command line of an app.
type Completer struct {
	App    *cli.App
	Topics []Topic
	// Values are the values that a flag of a command takes behind some other flags, as far as
	// they are known without an input.
	Values func(command, flag string, behind []string) []string
}

// A choice is something that may stand on a command line, and what it is.
type choice struct{ word, what string }

// Complete writes what may stand in the place of the last of the words that follow the
// name of the program.
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

// choices returns commands, topics of the help, flags or their values, in the order of the
// help; none where a file is wanted, or what nobody can know.
func (c *Completer) choices(words []string) []choice {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	head := "" // what stands before the value in the same word
	if flag, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(flag, "-") {
		before, last, head = append(slices.Clone(before), flag), value, flag+"="
	} else if last == "=" { // bash takes "--flag=value" for three words
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

// helpChoices returns what may stand behind 'sgtrace help' and some words more.
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
		if !strings.ContainsAny(word, " \t") { // a shell would want quotes
			all = append(all, choice{word: word})
		}
	}
	return all
}

// A place is where on a command line something may stand.
type place struct {
	command  string         // that it belongs to, the last of its words
	commands []*cli.Command // one of which may come next
	flags    []cli.Flag
	flag     string   // whose value is due; "" is none
	behind   []string // flags before it, without dashes
	inputs   int      // how many arguments the command has already
}

// placeAfter returns the place behind some words.
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

// Positionals returns the command that a command line calls, the last of its words, and how many
// arguments it is given besides flags. One that ends in the middle of a flag has as good as one more.
func Positionals(app *cli.App, args []string) (command string, n int) {
	p := placeAfter(app, args[min(1, len(args)):])
	if p.flag != "" {
		p.inputs++
	}
	return p.command, p.inputs
}

// choicesAt returns what may stand at a place, of flags only if that is one so far.
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
