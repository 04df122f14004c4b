//go:build unix

package memory

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Tables without room keep what is written to them, like others, and also when the
// kernel takes their pages away meanwhile.
func TestMakeWithoutRoom(t *testing.T) {
	defer SetBudget(0)
	SetBudget(1)
	before := Spilled()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			var tables [][]uint64
			for range 30 {
				table := Make[uint64](1 + r.IntN(300_000))
				if cap(table) != len(table) {
					t.Errorf("room for %d in a table of %d", cap(table), len(table))
				}
				for i := range table {
					if table[i] != 0 {
						t.Fatal("a new table is not empty")
					}
					table[i] = uint64(worker)<<56 | uint64(len(tables))<<32 | uint64(i)
				}
				tables = append(tables, table)
				Relax()
			}
			for k, table := range tables {
				for i, v := range table {
					if v != uint64(worker)<<56|uint64(k)<<32|uint64(i) {
						t.Fatalf("table %d of %d, row %d: %x", k, worker, i, v)
					}
				}
			}
		})
	}
	wg.Wait()
	if Spilled() == before {
		t.Error("nothing went to the file")
	}
}

func TestMakeWithRoom(t *testing.T) {
	before := Spilled()
	for _, budget := range []int64{0, 1 << 40} {
		SetBudget(budget)
		defer SetBudget(0)
		if table := Make[int64](1 << 20); len(table) != 1<<20 || Spilled() != before {
			t.Errorf("budget %d: %d rows, %d bytes spilled", budget, len(table), Spilled()-before)
		}
	}
}

func TestSpill(t *testing.T) {
	var blocks [][]byte
	for i := range 8 {
		block := slices.Repeat([]byte{byte(i + 1)}, 1<<20)
		mapped := Spill(block)
		if mapped == nil {
			t.Fatal("no room in the temporary directory")
		}
		clear(block)
		blocks = append(blocks, mapped)
	}
	Relax()
	for i, b := range blocks {
		if slices.IndexFunc(b, func(c byte) bool { return c != byte(i+1) }) >= 0 {
			t.Errorf("block %d has changed", i)
		}
	}
}

// Without a place for temporary files everything stays in memory.
func TestNoTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var f spillFile
	if b := f.table(1 << 20); b != nil {
		t.Error("a table in a directory that does not exist")
	}
	if !f.failed {
		t.Error("it will be tried again")
	}
}

// The file has no name, so that nothing can be left behind.
func TestNoNameIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var f spillFile
	if f.table(1<<20) == nil {
		t.Fatal("no room")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}
