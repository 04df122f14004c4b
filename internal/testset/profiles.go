package testset

import (
	"compress/gzip"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// NsysSet makes a set of an export, with a rank for every process.
func NsysSet(t testing.TB, path string) *profile.Set {
	t.Helper()
	set := &profile.Set{Syms: trace.NewSymbols()}
	src, err := rows.Open(path, rows.Options{Syms: set.Syms, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	ranks := map[int32]int32{}
	s := nsysexport.NewStream(src, func(pid int32) int32 {
		rank, ok := ranks[pid]
		if !ok {
			rank = int32(len(ranks))
			ranks[pid] = rank
			set.Ranks = append(set.Ranks, strconv.Itoa(int(pid)))
		}
		return rank
	})
	// Reports want to know all ranks before they walk over the rows.
	s.Kernels(func(*profile.Kernel) bool { return true })
	s.Copies(func(*profile.Copy) bool { return true })
	s.Calls(func(*profile.Call) bool { return true })
	s.Ranges(func(*profile.Range) bool { return true })
	set.Streams = []profile.Stream{s}
	return set
}

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
