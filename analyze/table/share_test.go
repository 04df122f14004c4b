package table

import "testing"

// A share is rounded half away from zero, although 1.25 is a float.
func TestShareIsRoundedUp(t *testing.T) {
	f := formatter{column: Column{Unit: Share}}
	if got := f.format(Cell{Share: 0.0125}); got != "1.3" {
		t.Errorf("1.25 %% is printed as %s", got)
	}
}
