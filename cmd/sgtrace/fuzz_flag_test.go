package main

import (
	"io"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// FuzzSize checks that an accepted memory size is the number times its unit.
func FuzzSize(f *testing.F) {
	for _, text := range []string{"2GB", "800 MB", "1.5GiB", "1000000000", "1e9", "0x1p30", "NaN", "Inf", "-1GB", "9EB", "1TiB", "999999999TB"} {
		f.Add(text)
	}
	units := map[string]float64{"B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := parseSize(text)
		if err != nil {
			return
		}
		number, factor := strings.ToUpper(strings.TrimSpace(text)), 1.0
		for unit, by := range units {
			if rest, ok := strings.CutSuffix(number, unit); ok && by >= factor && !strings.HasSuffix(rest, "I") {
				factor = by
			}
		}
		want, ok := new(big.Float).SetString(strings.TrimRight(number, "KMGTIB "))
		if !ok {
			t.Fatalf("%q is taken as %d", text, size)
		}
		exact, _ := want.Mul(want, big.NewFloat(factor)).Float64()
		if size < minMemory || math.Abs(exact-float64(size)) > 1+exact*1e-12 {
			t.Fatalf("%q is taken as %d, want %.0f", text, size, exact)
		}
	})
}

// FuzzArguments moves the flags of a report to the front: no argument is lost, positional arguments
// keep their order, and repeating it changes nothing.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{"a b --kernels -o x", "a=b -o out --from +1s c", "--tail p90 a", "a --tail", "--kernels hta a", "--kernels=file a", "-- -a --tail",
		"--limit", "-", "- --rid=x -", "report a"} {
		f.Add(line)
	}
	app := (&command{out: io.Discard, err: io.Discard}).app()
	f.Fuzz(func(t *testing.T, line string) {
		args := append([]string{"sgtrace", "report"}, strings.Split(line, " ")...)
		got := commandline.Reorder(app, slices.Clone(args))
		if again := commandline.Reorder(app, slices.Clone(got)); !slices.Equal(got, again) {
			t.Fatalf("%q becomes %q, and then %q", args, got, again)
		}
		missing := slices.Clone(args)
		for _, arg := range got {
			if i := slices.Index(missing, arg); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			} else if arg != "--classes" && arg != "p99" && !slices.Contains(args, "--kernels="+arg) {
				t.Fatalf("%q becomes %q, which has %q", args, got, arg)
			}
		}
		for _, arg := range missing {
			if !strings.HasPrefix(arg, "--kernels") && !endsShort(args) {
				t.Fatalf("%q becomes %q, without %q", args, got, arg)
			}
		}
		if i := slices.IndexFunc(args[2:], func(arg string) bool { return len(arg) > 1 && arg[0] == '-' }); i < 0 && !slices.Equal(got, args) {
			t.Fatalf("without a flag, %q becomes %q", args, got)
		}
	})
}

// endsShort reports whether the last argument is a flag without its value. Reorder then drops
// everything but the flags, so that the flag does not swallow an input.
func endsShort(args []string) bool { return strings.HasPrefix(args[len(args)-1], "-") }
