package commandline

import (
	"errors"
	"reflect"
	"testing"

	"github.com/urfave/cli/v2"
)

// read parses arguments, and returns the selection and the arguments that Args gives for it.
func read(t *testing.T, args ...string) (s *Selected, again []string, err error) {
	t.Helper()
	app := &cli.App{Flags: Flags(), DisableSliceFlagSeparator: true, Action: func(ctx *cli.Context) error {
		s, err = Read(ctx)
		again = Args(ctx)
		return nil
	}}
	if err := app.Run(append([]string{"program"}, args...)); err != nil {
		t.Fatal(err)
	}
	return s, again, err
}

// Args repeats every flag: its result selects the same.
func TestArgsChooseTheSame(t *testing.T) {
	args := []string{"--rid", "a,b", "--rid", "c", "--room", "0x1f", "--trace", "00ff", "--status", "failed", "--slowest", "3:ttft", "--from", "+1s", "--to", "20:53:20",
		"--sample", "0.25", "--role", "decode", "--host", "node1", "--rank", "decode DP1 TP0", "--stage", "prefill forward", "--min-dur", "1500us", "--level", "2"}
	given, again, err := read(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	repeated, _, err := read(t, again...)
	if err != nil || !reflect.DeepEqual(given, repeated) {
		t.Errorf("%q become %q, which choose\n%+v, not\n%+v (%v)", args, again, repeated, given, err)
	}
	set := map[string]bool{}
	for _, arg := range again {
		set[arg] = true
	}
	for _, f := range Flags() {
		if name := "--" + f.Names()[0]; !set[name] {
			t.Errorf("%s is lost", name)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--sample", "0"}, {"--sample", "1.5"}, {"--level", "-1"}, {"--trace", "xyz"}, {"--room", "kitchen"}, {"--status", "done"},
		{"--status", "failed,aborted"}, {"--role", "cook"}, {"--rank", "TPX"}, {"--min-dur", "-1s"}, {"--slowest", "0"}, {"--slowest", "3:itch"}, {"--from", "soon"}} {
		_, _, err := read(t, args...)
		var wrong UsageError
		if !errors.As(err, &wrong) {
			t.Errorf("%q: %v is no usage error", args, err)
		}
	}
}
