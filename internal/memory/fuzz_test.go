//go:build unix

package memory

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzMake makes tables of any size and spills blocks next to each other, while their pages are
// evicted. Each keeps its contents, new tables are zero, and bytes in the file are counted.
func FuzzMake(f *testing.F) {
	f.Add([]byte("\x01\x02\x10\x20\xf0\x80\x40\x03"))
	f.Add(bytes.Repeat([]byte("\x00\xff\x7f"), 20))
	f.Fuzz(func(t *testing.T, steps []byte) {
		defer forget(t)
		SetBudget(1)
		before := Spilled()
		var tables [][]byte
		made := int64(0)
		for i, step := range steps[:min(len(steps), 60)] {
			size := int(step) * int(step) * 4
			mark := byte(i + 1)
			switch {
			case step%5 == 0 && size > 0:
				block := bytes.Repeat([]byte{mark}, size)
				if mapped := Spill(block); mapped != nil {
					clear(block)
					block = mapped
				}
				tables = append(tables, block)
			case step%7 == 0:
				Relax()
				tables = append(tables, nil)
			default:
				table := Make[byte](size)
				if len(table) != size || cap(table) != size || bytes.Count(table, []byte{0}) != size {
					t.Fatalf("a table of %d bytes has %d, not all of them 0", size, len(table))
				}
				if size >= smallest {
					made += int64(size)
				}
				for k := range table {
					table[k] = mark
				}
				tables = append(tables, table)
			}
		}
		for i, table := range tables {
			if bytes.Count(table, []byte{byte(i + 1)}) != len(table) {
				t.Fatalf("table %d of %d bytes is not what was written to it", i, len(table))
			}
		}
		if spilled := Spilled() - before; spilled != made {
			t.Fatalf("%d bytes have gone to the file, %d are counted", made, spilled)
		}
	})
}

// forget truncates the file, so that the fuzzer does not fill the disk.
func forget(t *testing.T) {
	SetBudget(0)
	file.remove(t)
	file = &spillFile{}
}

func (s *spillFile) remove(t *testing.T) {
	for _, m := range s.mapped {
		if err := unix.Munmap(m); err != nil {
			t.Fatal(err)
		}
	}
	if s.file != nil {
		s.file.Close()
	}
}
