package selection

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

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
		got, err := Instant("--from", text, trace.Time(first))
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

// A window that ends before it begins is found before the input is read if its bounds have
// the same form, and otherwise as soon as the first event is known.
func TestWindowOrder(t *testing.T) {
	const first = trace.Time(1_787_000_000_000_000_000) // 2026-08-17T20:53:20Z
	for _, c := range []struct {
		from, to        string
		early, resolved bool // is an error
	}{
		{"", "", false, false},
		{"+1s", "+2s", false, false},
		{"+2s", "+1s", true, true},
		{"20:53:20", "20:53:19", true, true},
		{"2026-08-17T20:53:20Z", "2026-08-17T20:53:19Z", true, true},
		{"1787000001", "1787000000.5", true, true},
		{"20:53:20", "+1s", false, false},
		{"+10s", "20:53:25", false, true},
		{"+1s", "soon", true, true},
		{"soon", "", true, true},
	} {
		w := Window{c.from, c.to}
		if err := w.Check(); (err != nil) != c.early {
			t.Errorf("%+v: before reading: %v", w, err)
		}
		from, to, err := w.Resolve(first)
		if (err != nil) != c.resolved || to != 0 && from > to {
			t.Errorf("%+v: from %d to %d, %v", w, from, to, err)
		}
	}
}
