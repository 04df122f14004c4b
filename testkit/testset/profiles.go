package testset

import (
	"compress/gzip"
	"io"
	"os"
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
