package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completeCommand is what the scripts of shells run: it prints what may stand in the
// place of the last word, which may be empty. It is no command of people and not listed.
const completeCommand = "__complete"

// completions are scripts that ask the program what may come next, so that commands and
// flags are those of the help. Where it has nothing to say, names of files are offered.
var completions = map[string]string{
	"bash": `# source <(sgtrace help completion bash)
_sgtrace() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _sgtrace sgtrace
`,
	"zsh": `#compdef sgtrace
# source <(sgtrace help completion zsh)
_sgtrace() {
  local -a choices
  choices=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${choices[1]}" ]]; then compadd -- "${choices[@]}"; else _files; fi
}
compdef _sgtrace sgtrace
`,
	"fish": `# sgtrace help completion fish | source
function __sgtrace
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c sgtrace -a '(__sgtrace)'
`,
}

// helpCompletion prints the script of a shell.
func (c *command) helpCompletion(args []string) error {
	if len(args) != 1 || completions[args[0]] == "" {
		return usage("help completion takes the name of a shell: %s", strings.Join(slices.Sorted(maps.Keys(completions)), ", "))
	}
	_, err := io.WriteString(c.out, completions[args[0]])
	return err
}

// complete prints what may stand in the place of the last of the words that follow the
// name of the program.
func (c *command) complete(app *cli.App, words []string) error {
	for _, choice := range choices(app, words) {
		if _, err := fmt.Fprintln(c.out, choice); err != nil {
			return err
		}
	}
	return nil
}

// choices returns commands, topics of the help or flags, in the order of the help; none
// where a file or a value of a flag is wanted.
func choices(app *cli.App, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	helping := len(before) > 0 && before[0] == "help"
	if helping {
		before = before[1:]
	}
	commands, flags, inputs := app.Commands, app.Flags, false
	for i, word := range before {
		sub := find(commands, word)
		switch {
		case sub != nil && !inputs:
			commands, flags = sub.Subcommands, sub.Flags
		case !strings.HasPrefix(word, "-"):
			inputs = inputs || i == 0 || !valueFlags(flags)[strings.TrimLeft(before[i-1], "-")]
		case i == len(before)-1 && valueFlags(flags)[strings.TrimLeft(word, "-")]:
			return nil // the value of this flag
		}
	}
	var all []string
	switch {
	case strings.HasPrefix(last, "-"):
		for _, f := range append(flags[:len(flags):len(flags)], cli.HelpFlag) {
			for _, name := range f.Names() {
				all = append(all, dashed(name))
			}
		}
	case !inputs:
		all = commandNames(commands)
		if len(before) == 0 && helping {
			for _, t := range helpTopics() {
				all = append(all, t.Name)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, last) })
}
