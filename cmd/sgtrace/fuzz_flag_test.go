package main

import (
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzInstant reads times as users write them: what is taken is the time that exact
// arithmetic makes of the text, whatever it is near to, and never beyond what a time can
// be.
func FuzzInstant(f *testing.F) {
	for _, text := range []string{"2026-08-17T20:53:20Z", "2026-08-17T20:53:20.123456789+02:00", "20:53:20", "23:59:59.999999999",
		"1787000000", "1787000000.123456789", "1787000000.", "9999-12-31T00:00:00Z", "9999999999", "+10s", "+1h2m3.5ms", "+-5s", "-5s", "0", "", "soon"} {
		f.Add(text, int64(1_787_000_000_123_456_789))
	}
	decimal := regexp.MustCompile(`^[0-9]+(\.[0-9]{0,9})?$`)
	f.Fuzz(func(t *testing.T, text string, first int64) {
		first = max(first, -first, 0) // -1<<63 is its own negative
		got, err := instant("--from", text, trace.Time(first))
		if err != nil {
			if got != 0 || !strings.HasPrefix(err.Error(), "--from ") {
				t.Fatalf("%q: %d, %v", text, got, err)
			}
			if at, err := time.Parse(time.RFC3339, text); err == nil && at.Year() >= 1970 && at.Year() < 2262 {
				t.Fatalf("%q is not taken", text)
			}
			return
		}
		want := new(big.Int)
		at, stamp := time.Parse(time.RFC3339Nano, text)
		clock, ofDay := time.Parse("15:04:05.999999999", text)
		offset, relative := time.ParseDuration(strings.TrimPrefix(text, "+"))
		switch {
		case text == "":
		case strings.HasPrefix(text, "+") && relative == nil:
			want.Add(big.NewInt(first), big.NewInt(int64(offset)))
		case stamp == nil:
			want.Add(want.Mul(big.NewInt(at.Unix()), big.NewInt(1e9)), big.NewInt(int64(at.Nanosecond())))
		case ofDay == nil:
			const day = int64(24 * time.Hour)
			want.SetInt64(first/day*day + int64(clock.Hour())*int64(time.Hour) + int64(clock.Minute())*int64(time.Minute) +
				int64(clock.Second())*int64(time.Second) + int64(clock.Nanosecond()))
		case decimal.MatchString(text):
			seconds, _ := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
			seconds.Mul(seconds, big.NewRat(1e9, 1))
			want.Quo(seconds.Num(), seconds.Denom())
		default:
			t.Fatalf("%q is taken as %d", text, got)
		}
		if !want.IsInt64() || want.Int64() != int64(got) {
			t.Fatalf("%q, where the first event is at %d, is %d, want %v", text, first, got, want)
		}
	})
}

// FuzzSize reads sizes of memory: what is taken is what the number times its unit is.
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
		if size < leastMemory || math.Abs(exact-float64(size)) > 1+exact*1e-12 {
			t.Fatalf("%q is taken as %d, want %.0f", text, size, exact)
		}
	})
}

// FuzzArguments puts flags of a report in front: no argument is lost, those that are no flags keep
// their order, and nothing changes when it is done again.
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

// endsShort reports whether the last argument is a flag that lacks its value: nothing but
// flags is passed on then, so that no input is taken for it.
func endsShort(args []string) bool { return strings.HasPrefix(args[len(args)-1], "-") }
