package profile

import "testing"

// ProcessOf finds the process among entries that producers number like processes.
func TestProcessOf(t *testing.T) {
	row := func(kind RowKind, part, pid string, number int64, process, labels string) Row {
		return Row{Kind: kind, Part: part, PIDText: pid, PID: number, Process: process, Labels: labels}
	}
	for _, c := range []struct {
		what string
		meta Meta
		rows []Row
		name string
		pid  int64
		n    int
	}{
		{what: "nothing"},
		{what: "threads and streams", rows: []Row{row(RowStream, "", "3", 3, "python", "GPU 3"), row(RowThread, "", "41", 41, "python", "CPU"), row(RowThread, "", "41", 41, "python", "CPU")},
			name: "python", pid: 41, n: 1},
		{what: "Python calls on the row of a GPU", rows: []Row{row(RowThread, "", "0", 0, "python", "GPU 0"), row(RowThread, "", "1", 1, "python", "GPU 1"), row(RowThread, "", "41", 41, "python", "CPU")},
			name: "python", pid: 41, n: 1},
		{what: "an annotation with the number that another container uses", rows: []Row{row(RowThread, "", "7", 7, "", ""), row(RowThread, "", "41", 41, "python", "CPU")},
			name: "python", pid: 41, n: 1},
		{what: "two without names", rows: []Row{row(RowThread, "", "7", 7, "", ""), row(RowThread, "", "8", 8, "", "")}, n: 2},
		{what: "two with names", rows: []Row{row(RowThread, "", "7", 7, "a", ""), row(RowThread, "", "8", 8, "b", "")}, n: 2},
		{what: "another part", rows: []Row{row(RowThread, "TP0", "7", 7, "a", ""), row(RowThread, "", "8", 8, "b", "")}, name: "b", pid: 8, n: 1},
		{what: "an export", meta: Meta{PID: 9}, rows: []Row{row(RowThread, "", "9", 9, "", "")}, pid: 9, n: 1},
	} {
		p := Profile{Meta: c.meta, Rows: c.rows}
		if name, pid, n := p.ProcessOf(""); name != c.name || pid != c.pid || n != c.n {
			t.Errorf("%s: %q, %d, %d; want %q, %d, %d", c.what, name, pid, n, c.name, c.pid, c.n)
		}
	}
}
