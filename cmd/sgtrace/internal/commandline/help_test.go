package commandline

import (
	"testing"

	"github.com/urfave/cli/v2"
)

func TestFlagText(t *testing.T) {
	for _, test := range []struct {
		flag cli.DocGenerationFlag
		want string
	}{
		{&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write to `FILE`"}, "  -o, --output FILE     write to FILE\n"},
		{&cli.StringFlag{Name: "view", Value: "both", Usage: "draw"}, "  --view VALUE          draw (default: both)\n"},
		{&cli.BoolFlag{Name: "latency", Usage: "only", DisableDefaultText: true}, "  --latency             only\n"},
		{&cli.StringSliceFlag{Name: "selection", Usage: "of `THIS:THAT`"}, "  --selection THIS:THAT\n                        of THIS:THAT (repeatable)\n"},
	} {
		if have := flagText(test.flag); have != test.want {
			t.Errorf("%q, want %q", have, test.want)
		}
	}
}
