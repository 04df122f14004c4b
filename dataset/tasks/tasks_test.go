package tasks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/dataset"
)

// When many processes create a file, one succeeds, and all read the same content.
func TestOneClaims(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var all sync.WaitGroup
	got := make([]string, 32)
	for i := range got {
		all.Go(func() {
			text, err := claim(path, dir, []byte(fmt.Sprintf("written by %d", i)), 0o600)
			if err != nil {
				t.Error(err)
			}
			got[i] = string(text)
		})
	}
	all.Wait()
	if !strings.HasPrefix(got[0], "written by ") || len(slices.Compact(got)) != 1 {
		t.Errorf("read %q", got)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// The key is stored beside the dataset, and stays.
func TestKey(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "week")
	first, err := Key(folder + "/")
	if err != nil || len(first) < 32 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := Key(folder); err != nil || string(again) != string(first) {
		t.Errorf("then %q, %v", again, err)
	}
	if info, err := os.Stat(folder + ".key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAgreeOnKey(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		check string
		want  error
	}{{"a", nil}, {"a", nil}, {"b", ErrOtherKey}, {"", ErrRedacted}} {
		if err := AgreeOnKey(folder, c.check); !errors.Is(err, c.want) {
			t.Errorf("with %q: %v, want %v", c.check, err, c.want)
		}
	}
	// Without a key file, the existing data was not redacted.
	folder = t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, dataset.Version, "capture=0-0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(AgreeOnKey(folder, "")); err != nil {
		t.Error(err)
	}
	if err := AgreeOnKey(folder, "a"); !errors.Is(err, ErrNotRedacted) {
		t.Errorf("%v", err)
	}
}

// Shards with the same total belong together, and a dataset reports which are missing.
func TestShards(t *testing.T) {
	folder := t.TempDir()
	shard := func(i, of int) *Run {
		return &Run{Folder: folder, Arguments: []string{"/traces"}, Shard: i, Of: of, Found: 10}
	}
	missing := func(want string) {
		t.Helper()
		if got := strings.Join(Missing(folder), "; "); got != want {
			t.Errorf("missing %q, want %q", got, want)
		}
	}
	run := func(i, of, extracted int) {
		t.Helper()
		if err := errors.Join(shard(i, of).Begin(), shard(i, of).End(extracted)); err != nil {
			t.Fatal(err)
		}
	}
	missing("")
	run(0, 3, 4)
	run(0, 3, 4) // a task may run twice
	if err := shard(1, 3).Begin(); err != nil {
		t.Fatal(err)
	}
	missing("of /traces, shards 1, 2 never ended of 3")
	if err := shard(1, 2).Begin(); err == nil || !strings.Contains(err.Error(), "being extracted in 3 shards, of which 1 have ended") {
		t.Errorf("another number of shards: %v", err)
	}
	other := shard(1, 2)
	other.Arguments = []string{"/other"}
	if err := errors.Join(other.Begin(), other.End(1)); err != nil {
		t.Errorf("shards of other inputs: %v", err)
	}
	run(1, 3, 3)
	run(2, 3, 2)
	missing("of /other, shard 0 never ended of 2; of /traces, the shards have 9 of 10 inputs; some came later, so extract again")
	run(2, 3, 3)
	missing("of /other, shard 0 never ended of 2")
	run(0, 5, 2) // all other shards have finished
	missing("of /other, shard 0 never ended of 2; of /traces, shards 1, 2, 3, 4 never ended of 5")
	run(0, 0, 10)
	missing("of /other, shard 0 never ended of 2")
	if err := Forget(folder); err != nil {
		t.Fatal(err)
	}
	missing("")
}

func TestListed(t *testing.T) {
	var all []string
	for i := range 12 {
		all = append(all, fmt.Sprint(i))
	}
	if got := listed(all); got != "shards 0, 1, 2, 3, 4, 5, 6, 7 and 4 more" {
		t.Error(got)
	}
}
