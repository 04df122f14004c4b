package commandline

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/trace"
)

// FuzzInstant checks that an accepted time equals the one that exact arithmetic derives from the
// text, and is within the range of times.
func FuzzInstant(f *testing.F) {
	for _, text := range []string{"2026-08-17T20:53:20Z", "2026-08-17T20:53:20.123456789+02:00", "20:53:20", "23:59:59.999999999",
		"1787000000", "1787000000.123456789", "1787000000.", "9999-12-31T00:00:00Z", "9999999999", "+10s", "+1h2m3.5ms", "+-5s", "-5s", "0", "", "soon",
		"2026-08-17 20:53:20", "2026-08-17T20:53:20.5", "02:30:00", "20:53", "2026-08-17 20:53", "2026-08-17", "2026-08-17T20:53Z", "-10m", "--1s", "+9999999h"} {
		f.Add(text, int64(1_787_000_000_123_456_789), int16(0))
		f.Add(text, int64(1_787_000_000_123_456_789), int16(-570))
	}
	decimal := regexp.MustCompile(`^[0-9]+(\.[0-9]{0,9})?$`)
	f.Fuzz(func(t *testing.T, text string, first int64, minutes int16) {
		offset := int64(minutes%(14*60)) * int64(time.Minute)
		zone := time.FixedZone("there", int(offset/1e9))
		first = max(first, -first, 0) >> 1 // -1<<63 is its own negative; half the range leaves room for offsets
		last := first + int64(time.Hour)
		got, err := Instant("--from", text, trace.Time(first), trace.Time(last), zone)
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
		date, dated := time.Parse("2006-01-02T15:04:05", strings.Replace(text, " ", "T", 1))
		for _, layout := range []string{"2006-01-02T15:04", "2006-01-02"} {
			if dated != nil {
				date, dated = time.Parse(layout, strings.Replace(text, " ", "T", 1))
			}
		}
		if stamp != nil {
			at, stamp = time.Parse("2006-01-02T15:04Z07:00", text)
		}
		clock, ofDay := time.Parse("15:04:05.999999999", text)
		if ofDay != nil {
			clock, ofDay = time.Parse("15:04", text)
		}
		after, relative := time.ParseDuration(strings.TrimPrefix(text, "+"))
		switch {
		case text == "":
		case strings.HasPrefix(text, "-") && relative == nil && after <= 0:
			want.Add(big.NewInt(last), big.NewInt(int64(after)))
		case strings.HasPrefix(text, "+") && relative == nil:
			want.Add(big.NewInt(first), big.NewInt(int64(after)))
		case stamp == nil:
			want.Add(want.Mul(big.NewInt(at.Unix()), big.NewInt(1e9)), big.NewInt(int64(at.Nanosecond())))
		case dated == nil:
			want.Add(want.Mul(big.NewInt(date.Unix()), big.NewInt(1e9)), big.NewInt(int64(date.Nanosecond())-offset))
		case ofDay == nil:
			const day = int64(24 * time.Hour)
			there := first + offset
			want.SetInt64(there - (there%day+day)%day - offset + int64(clock.Hour())*int64(time.Hour) + int64(clock.Minute())*int64(time.Minute) +
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

// A window that ends before it begins is rejected before the input is read if both bounds have the
// same form, and otherwise once the first event is known.
func TestWindowOrder(t *testing.T) {
	const first = trace.Time(1_787_000_000_000_000_000) // 2026-08-17T20:53:20Z
	for _, c := range []struct {
		from, to        string
		early, resolved bool // whether an error is expected
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
		{"-10s", "-5s", false, false},
		{"-5s", "-10s", true, true},
		{"+10s", "-10s", false, false},
		{"+50s", "-50s", false, true},
		{"20:54", "20:53", true, true},
		{"20:53", "-10s", false, false},
	} {
		w := Window{c.from, c.to}
		if err := w.Check(time.UTC); (err != nil) != c.early {
			t.Errorf("%+v: before reading: %v", w, err)
		}
		from, to, err := w.Resolve(first, first+60_000_000_000, time.UTC)
		if (err != nil) != c.resolved || to != 0 && from > to {
			t.Errorf("%+v: from %d to %d, %v", w, from, to, err)
		}
	}
}

// A time of day is on the date that the zone's clock shows at the first event.
func TestTimesOfDayInZones(t *testing.T) {
	for _, c := range []struct{ zone, first, text, want string }{
		{"Europe/Berlin", "2026-08-17T20:53:20Z", "22:53:25", "2026-08-17T20:53:25Z"},
		{"Europe/Berlin", "2026-08-17T22:53:20Z", "00:53:25", "2026-08-17T22:53:25Z"},
		{"Europe/Berlin", "2026-08-17T22:53:20Z", "2026-08-18 00:53:25", "2026-08-17T22:53:25Z"},
		{"Europe/Berlin", "2026-08-17T22:53:20Z", "2026-08-18T00:53:25+01:00", "2026-08-17T23:53:25Z"},
		{"Europe/Berlin", "2026-10-25T00:10:00Z", "03:30:00", "2026-10-25T02:30:00Z"},
		{"America/New_York", "2026-08-17T02:53:20Z", "22:53:25", "2026-08-17T02:53:25Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		first, err := time.Parse(time.RFC3339, c.first)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Instant("--from", c.text, trace.Time(first.UnixNano()), trace.Time(first.UnixNano()), zone)
		if at := time.Unix(0, int64(got)).UTC().Format(time.RFC3339); err != nil || at != c.want {
			t.Errorf("%s in %s, where the first event is at %s, is %s, want %s (%v)", c.text, c.zone, c.first, at, c.want, err)
		}
	}
}

// A zone is a name or an offset, and suggested commands repeat it.
func TestZone(t *testing.T) {
	for text, offset := range map[string]int{"UTC": 0, "Z": 0, "Europe/Berlin": 7200, "+02:00": 7200, "-0930": -34200, "+05": 18000} {
		zone, again, _ := readZone(t, "--tz="+text)
		if zone == nil {
			t.Errorf("--tz %s is not taken", text)
			continue
		}
		if _, got := time.Unix(1_787_000_000, 0).In(zone).Zone(); got != offset {
			t.Errorf("--tz %s is %d s ahead of UTC, want %d", text, got, offset)
		}
		if !slices.Equal(again, []string{"--tz", text}) {
			t.Errorf("--tz %s becomes %q", text, again)
		}
	}
	for _, text := range []string{"Berlin/Europe", "+2:0", "Local time", "../etc/passwd"} {
		if _, _, err := readZone(t, "--tz="+text); err == nil {
			t.Errorf("--tz %s is taken", text)
		}
	}
}

// readZone parses arguments, and returns the zone and the arguments that Args gives for it.
func readZone(t *testing.T, args ...string) (zone *time.Location, again []string, err error) {
	t.Helper()
	app := &cli.App{Flags: append(Flags(), ZoneFlag("")), Action: func(ctx *cli.Context) error {
		zone, err = Zone(ctx)
		again = Args(ctx)
		return nil
	}}
	if err := app.Run(append([]string{"program"}, args...)); err != nil {
		t.Fatal(err)
	}
	return zone, again, err
}
