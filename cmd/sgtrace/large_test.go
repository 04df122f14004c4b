package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A warning says that a timeline is too large for some viewers, and how to draw a part of it.
func TestLargeTimeline(t *testing.T) {
	defer func(n int) { mostViewed = n }(mostViewed)
	dir := t.TempDir()
	if err := os.Rename(recorded(t, 6), filepath.Join(dir, inputsName)); err != nil {
		t.Fatal(err)
	}
	const note = "the viewer may run out of memory [timeline-large]"
	for _, most := range []int{1 << 30, 1000} {
		mostViewed = most
		r := mustRun(t, dir, "merge -o out.pftrace "+inputsName)
		if large := most == 1000; strings.Contains(r.err, note) != large {
			t.Errorf("with %d slices at most: %s", most, r.err)
		}
	}
}
