package testset

import (
	"cmp"
	"compress/gzip"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// TorchSet reads PyTorch traces, the ranks of a set.
func TorchSet(t testing.TB, paths ...string) (*profile.Set, []*profile.Profile) {
	t.Helper()
	set := &profile.Set{Syms: trace.NewSymbols()}
	args := trace.NewArgs()
	var profiles []*profile.Profile
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		p, err := chrometrace.Read(path, r, chrometrace.Options{Syms: set.Syms, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, p)
		set.Ranks = append(set.Ranks, strconv.Itoa(i))
		set.Streams = append(set.Streams, p.Stream(set.Syms, args, func(string) (int32, int32) { return int32(i), -1 }))
	}
	return set, profiles
}

// Rank reads a rank as producers and truths have it: "TP0-PP0-DP1".
func Rank(t testing.TB, text string) trace.Rank {
	t.Helper()
	r, err := trace.ParseRank(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// CollectiveMatches are collectives that are held.
type CollectiveMatches struct {
	Points  []profile.CollectiveMatch // by first arrival
	Kernels []profile.Part            // by rank and start
}

// Matches implements [profile.CollectiveMatches].
func (m *CollectiveMatches) Matches(bool) iter.Seq[*profile.CollectiveMatch] {
	return each(m.Points)
}

// Parts implements [profile.CollectiveMatches].
func (m *CollectiveMatches) Parts() iter.Seq[*profile.Part] {
	return each(slices.SortedStableFunc(slices.Values(m.Kernels), func(a, b profile.Part) int { return cmp.Compare(a.Rank, b.Rank) }))
}

func each[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
