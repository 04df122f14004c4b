package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// The help of every command fits a terminal and names every flag.
func TestHelp(t *testing.T) {
	var c command
	pages := [][]string{{}}
	flags := map[string][]cli.Flag{}
	var visit func(path []string, commands []*cli.Command)
	visit = func(path []string, commands []*cli.Command) {
		for _, cmd := range commands {
			page := append(path[:len(path):len(path)], cmd.Name)
			pages = append(pages, page)
			flags[strings.Join(page, " ")] = cmd.Flags
			visit(page, cmd.Subcommands)
		}
	}
	visit(nil, c.app().Commands)
	for _, page := range pages {
		name := strings.Join(page, " ")
		var out, errOut bytes.Buffer
		if status := run(append([]string{"sgtrace", "help"}, page...), nil, &out, &errOut); status != exitOK {
			t.Errorf("help %s: status %d: %s", name, status, errOut.String())
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(line) > commandline.Width+1 {
				t.Errorf("help %s: wider than a terminal: %s", name, line)
			}
		}
		for _, f := range flags[name] {
			for _, flag := range f.Names() {
				if !strings.Contains(out.String(), "-"+flag) {
					t.Errorf("help %s does not name -%s", name, flag)
				}
			}
		}
	}
}
