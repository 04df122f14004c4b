package storage

import (
	"strings"
	"testing"
)

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		head string
		want bool
	}{
		{magic + "more", true},
		{reportMagic + " 2026@4@1@191", true},
		{strings.Repeat("\x00", 4096), true},
		{strings.Repeat("\x00", 100), false},
		{"", false},
		{"{}", false},
		{"SQLite format 2\x00", false},
	} {
		if got := IsDatabase([]byte(c.head)); got != c.want {
			t.Errorf("%.20q: %v", c.head, got)
		}
	}
}
