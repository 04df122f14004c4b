package words

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/sgtrace/sgtrace/trace"
)

// inZone writes times in a zone until the test ends.
func inZone(t *testing.T, name string) {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	SetZone(z)
	t.Cleanup(func() { SetZone(time.UTC) })
}

// instant parses an RFC 3339 time.
func instant(t *testing.T, text string) trace.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return trace.Time(at.UnixNano())
}

// The offset from UTC is printed only for times near a clock change.
func TestTimesInZones(t *testing.T) {
	for _, c := range []struct{ zone, at, want, name string }{
		{"UTC", "2026-10-25T00:30:00Z", "00:30:00.0", "UTC"},
		{"Europe/Berlin", "2026-08-17T20:53:20Z", "22:53:20.0", "UTC+02:00"},
		{"Europe/Berlin", "2026-10-25T00:30:00Z", "02:30:00.0 +02:00", "UTC+02:00"},
		{"Europe/Berlin", "2026-10-25T01:30:00Z", "02:30:00.0 +01:00", "UTC+01:00"},
		{"Europe/Berlin", "2026-10-26T01:00:01Z", "02:00:01.0", "UTC+01:00"},
		{"America/New_York", "2026-08-17T02:53:20Z", "22:53:20.0", "UTC-04:00"},
		{"Asia/Kolkata", "2026-08-17T20:53:20Z", "02:23:20.0", "UTC+05:30"},
		{"Europe/London", "2026-12-17T20:53:20Z", "20:53:20.0", "UTC"},
	} {
		inZone(t, c.zone)
		at := instant(t, c.at)
		if got := At(at, TenthLayout); got != c.want {
			t.Errorf("%s in %s is %q, want %q", c.at, c.zone, got, c.want)
		}
		if got := ZoneAt(at); got != c.name {
			t.Errorf("the zone at %s in %s is %q, want %q", c.at, c.zone, got, c.name)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, c := range []struct{ zone, from, to, want string }{
		{"UTC", "2026-08-17T20:53:20Z", "2026-08-17T20:53:41Z", "2026-08-17 20:53:20 to 20:53:41 UTC"},
		{"UTC", "2026-08-17T20:53:20.049Z", "2026-08-17T20:53:41Z", "2026-08-17 20:53:20.049 to 20:53:41.000 UTC"},
		{"UTC", "2026-08-17T23:53:20Z", "2026-08-18T00:53:41Z", "2026-08-17 23:53:20 to 2026-08-18 00:53:41 UTC"},
		{"Europe/Berlin", "2026-08-17T23:53:20Z", "2026-08-18T00:53:41Z", "2026-08-18 01:53:20 to 02:53:41 UTC+02:00"},
		{"Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25 02:30:00 UTC+02:00 to 02:30:00 UTC+01:00"},
	} {
		inZone(t, c.zone)
		if got := Between(instant(t, c.from), instant(t, c.to)); got != c.want {
			t.Errorf("in %s: %q, want %q", c.zone, got, c.want)
		}
	}
}

func TestTenths(t *testing.T) {
	inZone(t, "UTC")
	for _, c := range []struct{ from, to, first, last string }{
		{"2026-08-17T20:53:20Z", "2026-08-17T20:53:41Z", "20:53:20.0", "20:53:41.0"},
		{"2026-08-17T20:53:20Z", "2026-09-05T08:53:29Z", "2026-08-17 20:53:20.0", "2026-09-05 08:53:29.0"},
	} {
		if first, last := Tenths(instant(t, c.from), instant(t, c.to)); first != c.first || last != c.last {
			t.Errorf("%s to %s: %s and %s", c.from, c.to, first, last)
		}
	}
}

// If what is reported lasts for more than a day, a time of day has its date.
func TestDated(t *testing.T) {
	inZone(t, "UTC")
	SetDated(true)
	t.Cleanup(func() { SetDated(false) })
	from, to := instant(t, "2026-08-17T20:53:20Z"), instant(t, "2026-08-17T20:53:41Z")
	if got := At(from, TenthLayout); got != "2026-08-17 20:53:20.0" {
		t.Errorf("%q", got)
	}
	if got := At(from, DateLayout); got != "2026-08-17 20:53:20.000" {
		t.Errorf("%q", got)
	}
	if first, last := Tenths(from, to); first != "2026-08-17 20:53:20.0" || last != "20:53:41.0" {
		t.Errorf("%q to %q", first, last)
	}
	if got := Between(from, to); got != "2026-08-17 20:53:20 to 20:53:41 UTC" {
		t.Errorf("%q", got)
	}
}
