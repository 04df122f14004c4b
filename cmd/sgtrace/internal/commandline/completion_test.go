package commandline

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// The completion scripts are valid in their shells.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s: its script is not checked", shell)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(completions[shell])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v\n%s", shell, err, out)
		}
	}
}

// Standard input counts as an input if it is named.
func TestPositionals(t *testing.T) {
	app := &cli.App{Commands: []*cli.Command{{Name: "report", Flags: []cli.Flag{&cli.StringFlag{Name: "o"}, &cli.BoolFlag{Name: "v"}}}}}
	for line, want := range map[string]int{"report": 0, "report -": 1, "report -v -": 1, "report -o -": 0, "report -o x": 0, "report a - b": 3} {
		if name, n := Positionals(app, strings.Fields("sgtrace "+line)); name != "report" || n != want {
			t.Errorf("%s: %d arguments of %s, want %d", line, n, name, want)
		}
	}
}
