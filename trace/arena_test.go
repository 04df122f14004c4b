package trace

import (
	"encoding/binary"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// Lists from several appenders come back, whether in memory, spilled, or too long for a block, and
// the temporary file has no name.
func TestAppendersSpill(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	syms, args := NewSymbols(), NewArgs()
	key := syms.Intern("k")
	const writers, lists, size = 3, 400, 100_000
	var ids [writers][lists]ArgsID
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			put := args.Appender()
			text := make([]byte, size)
			for i := range lists {
				binary.LittleEndian.PutUint32(text, uint32(w*lists+i))
				n := size - i
				if i%100 == 7 {
					n = argsBlock + i
					text = append(text, make([]byte, argsBlock+lists)...)
				}
				ids[w][i] = put.Put(ArgList(nil).Bytes(key, text[:n]))
				text = text[:size]
			}
		})
	}
	wg.Wait()
	if args.Size() < 100<<20 {
		t.Fatalf("the arena has %d bytes; the test wants more than stay in memory", args.Size())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files left over: %v", left)
	}
	for range 2 {
		for w := range writers {
			for i, id := range ids[w] {
				a, ok := args.Find(id, key)
				if !ok || binary.LittleEndian.Uint32(a.Bytes()) != uint32(w*lists+i) {
					t.Fatalf("list %d of appender %d does not come back", i, w)
				}
				if n := len(a.Bytes()); n != size-i && n != argsBlock+i {
					t.Fatalf("list %d of appender %d has %d bytes", i, w, n)
				}
			}
		}
		memory.Relax()
	}
}

// Without a directory for the file, everything stays in memory.
func TestSpillNeedsNoDisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	args := NewArgs()
	put := args.Appender()
	var ids []ArgsID
	for i := range 80 {
		text := make([]byte, argsBlock-100)
		text[0] = byte(i)
		ids = append(ids, put.Put(ArgList(nil).Bytes(1, text)))
	}
	for i, id := range ids {
		if a, ok := args.Find(id, 1); !ok || a.Bytes()[0] != byte(i) {
			t.Fatalf("list %d does not come back", i)
		}
	}
}

func BenchmarkAppender(b *testing.B) {
	put := NewArgs().Appender()
	list := ArgList(nil).Int(1, 5).Int(2, 1<<40).String(3, "0123456789")
	b.ReportAllocs()
	for b.Loop() {
		put.Put(list)
	}
}

// A new appender continues the block of a released one, so that a folder of many small files does
// not take a block for each.
func TestReleasedAppenders(t *testing.T) {
	args := NewArgs()
	lists := map[ArgsID]int64{}
	for i := range int64(100) {
		one, other := args.Appender(), args.Appender()
		lists[one.Put(ArgList(nil).Int(1, i))] = i
		lists[other.Put(ArgList(nil).Int(1, -i))] = -i
		one.Release()
		other.Release()
	}
	if args.Size() != 2<<argsBlockBits {
		t.Errorf("%d bytes for two appenders at a time", args.Size())
	}
	for id, want := range lists {
		if a, ok := args.Find(id, 1); !ok || a.Int() != want {
			t.Errorf("%d instead of %d", a.Int(), want)
		}
	}
}
