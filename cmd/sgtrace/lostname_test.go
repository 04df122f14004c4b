package main

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A name that a row of an export lacks is reported once, however many passes read the table.
func TestLostNameIsToldOnce(t *testing.T) {
	r := sgtrace(t, t.TempDir(), "report", testinput.Shared(t, "data", "nsys", "synth", "s_anom.sqlite"))
	if !strings.Contains(r.out+r.err, "[nsys-name-missing]") || strings.Contains(r.out+r.err, "[nsys-name-missing], 2") || strings.Contains(r.err, "[nsys-name-missing] (") {
		t.Errorf("%s%s", r.out, r.err)
	}
}
