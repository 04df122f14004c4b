package main

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// FuzzCommands runs every command on inputs with misplaced words, numbers, and brackets, and
// further damage. The invariants are those of TestMutants.
func FuzzCommands(f *testing.F) {
	list := simulatedSubjects(f, 8)
	for i := range uint8(14) {
		f.Add(i, i, []byte{}, uint32(0))
		f.Add(i, i/2, bytes.Repeat([]byte{i * 23, 101, i + 3, i * 7, 77, 15, i, 55}, int(i)), uint32(i))
	}
	f.Fuzz(func(t *testing.T, which, command uint8, edits []byte, seed uint32) {
		s := *list[int(which)%len(list)]
		switch plain := list[int(which)%len(list)/3*3]; {
		case s.kind == kindNsys:
			for ; len(edits) >= 4; edits = edits[4:] {
				s.Data = s.Mutate(uint64(binary.LittleEndian.Uint32(edits))).Data
				s.Cuts = testinput.Pages(s.Data, testinput.SQLitePage)
			}
		case s.ext == ".json":
			s.Data = testinput.Edit(s.Data, edits)
			s.Cuts = testinput.Tokens(s.Data)
		case s.ext == ".json.gz":
			s.Data, s.Cuts = testinput.Gzip(testinput.Edit(plain.Data, edits), 2)
		default:
			s.Data, s.Cuts = testinput.Zstd(testinput.Edit(plain.Data, edits), 2)
		}
		m := testinput.Mutant{Name: "edited", Data: s.Data}
		if seed > 0 {
			m = s.Mutate(uint64(seed))
		}
		e := &trial{subject: &s, mutant: m, command: s.kind.commands[int(command)%len(s.kind.commands)], dir: t.TempDir()}
		e.judge(t, (*trial).inProcess)
		if seed%4 == 0 {
			e.checkAgain(t, (*trial).inProcess)
		}
		if t.Failed() {
			t.Logf("%s: sgtrace %v", m.Name, e.args())
		}
	})
}
