package screen

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// screenOf calls New with arguments and an environment, where nothing is a terminal.
func screenOf(t *testing.T, errOut io.Writer, env map[string]string, args ...string) (s Screen, err error) {
	t.Helper()
	app := &cli.App{Flags: Flags(), Action: func(ctx *cli.Context) error {
		s, err = New(ctx, new(bytes.Buffer), errOut, func(name string) string { return env[name] })
		return nil
	}}
	if err := app.Run(append([]string{"program"}, args...)); err != nil {
		t.Fatal(err)
	}
	return s, err
}

// Files and pipes get plain text of any width and no pager, unless flags ask for more.
func TestNotATerminal(t *testing.T) {
	type env = map[string]string
	for _, c := range []struct {
		name          string
		env           env
		args          []string
		style, errors table.Style
	}{
		{"plain", env{"COLUMNS": "40", "PAGER": "more"}, nil, table.Style{}, table.Style{}},
		{"ASCII locale", env{"LANG": "C"}, nil, table.Style{ASCII: true}, table.Style{}},
		{"Latin-1 locale", env{"LC_CTYPE": "de_DE.ISO-8859-1", "LANG": "de_DE.UTF-8"}, nil, table.Style{ASCII: true}, table.Style{}},
		{"UTF-8 overrules", env{"LC_ALL": "C.UTF-8", "LANG": "C"}, nil, table.Style{}, table.Style{}},
		{"width", nil, []string{"--width", "70"}, table.Style{Width: 70}, table.Style{}},
		{"color is wanted", env{"NO_COLOR": "1"}, []string{"--color", "always"}, table.Style{Color: true}, table.Style{Color: true}},
		{"no color", nil, []string{"--color", "never"}, table.Style{}, table.Style{}},
	} {
		got, err := screenOf(t, io.Discard, c.env, c.args...)
		if err != nil || got.Style != c.style || got.ErrStyle != c.errors || got.Pager != "" {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// Notices go where messages go, or nowhere.
func TestQuiet(t *testing.T) {
	for quiet, want := range map[bool]string{true: "", false: "a notice"} {
		var errOut bytes.Buffer
		var args []string
		if quiet {
			args = []string{"--quiet"}
		}
		s, err := screenOf(t, &errOut, nil, args...)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(s.Notices, "a notice")
		if s.Quiet != quiet || errOut.String() != want {
			t.Errorf("quiet %t: %+v printed %q", quiet, s, errOut.String())
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, arg := range []string{"--width=-1", "--color=blue"} {
		_, err := screenOf(t, io.Discard, nil, arg)
		var wrong commandline.UsageError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v is no usage error", arg, err)
		}
	}
}
