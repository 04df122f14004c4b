package page

import (
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// Charts show times in the chosen zone, before and after zooming, and a range is
// given with the offset from UTC.
func TestZoneInBrowser(t *testing.T) {
	b, open := browse(t)
	words.SetZone(time.FixedZone("Kathmandu", 5*3600+45*60))
	t.Cleanup(func() { words.SetZone(time.UTC) })
	_, p := incident(t) // starts at 20:53:20 UTC
	open(p)
	ticks := func() string {
		return eval[string](t, b, `document.querySelector("#load .for-wide .ticks[data-labels=true] text").textContent`)
	}
	want(t, "hour of the first tick", ticks()[:5], "02:38")
	must(t, b.Eval(`{ const svg = document.querySelector("#load .for-wide svg[data-from]"); svg.focus(); svg.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true })); }`, nil))
	want(t, "hour of the first tick after zooming", ticks()[:5], "02:38")
	flags := eval[string](t, b, `document.querySelector("#time-range code").textContent`)
	if !strings.HasPrefix(flags, "--from 2026-08-18T02:38:") || !strings.HasSuffix(flags, "+05:45") {
		t.Errorf("flags of the range: %s", flags)
	}
	from := eval[float64](t, b, `Date.parse(document.querySelector("#time-range input").value)`)
	must(t, b.Eval(`{ const h = location.href; location.hash = ""; location.href = h; new Promise(r => setTimeout(r, 50)) }`, nil))
	want(t, "beginning of the range from the address", eval[float64](t, b, `Date.parse(document.querySelector("#time-range input").value)`), from)
	want(t, "note", eval[bool](t, b, `document.querySelector("#load").textContent.includes("times are UTC+05:45, from 2026-08-18 on")`), true)
}
