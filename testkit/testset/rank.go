package testset

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Rank reads a rank as producers and truths have it: "TP0-PP0-DP1".
func Rank(t testing.TB, text string) trace.Rank {
	t.Helper()
	r, err := trace.ParseRank(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
