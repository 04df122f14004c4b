package walk

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// RankFields name the rank of a row, where rows have one.
func RankFields[T any](byRank bool, of func(*T) *Row) []table.Field[T] {
	if !byRank {
		return nil
	}
	return []table.Field[T]{{Column: table.Column{Name: "rank", Doc: "rank, or process that is none"}, Cell: func(row *T) table.Cell { return table.TextCell(of(row).Rank) }}}
}

// RanksFields count the ranks of a row that pools them. Of one rank there is
// nothing to count.
func RanksFields[T any](byRank bool, all int, of func(*T) *Row) []table.Field[T] {
	if byRank {
		return nil
	}
	return []table.Field[T]{{Column: table.Column{Name: "ranks", Unit: table.Count, Doc: "how many ranks have any", Detail: all < 2},
		Cell: func(row *T) table.Cell { return table.Cell{N: int64(of(row).Ranks)} }}}
}

func ShareField[T any](doc string, of func(*T) float64) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: "time", Unit: table.Share, Doc: doc}, Cell: func(row *T) table.Cell { return table.Cell{Share: of(row)} }}
}

// NameField is the last column, since names are long.
func NameField[T any](what string, of func(*T) *Row) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: what, Doc: "name of the " + what, Most: table.MostName}, Cell: func(row *T) table.Cell { return table.TextCell(of(row).Name) }}
}

// ThreadFields name the thread of a row.
func ThreadFields[T any](of func(*T) (pid int32, tid int64)) []table.Field[T] {
	return []table.Field[T]{
		{Column: table.Column{Name: "pid", Unit: table.Count, Doc: "process"}, Cell: func(row *T) table.Cell {
			pid, _ := of(row)
			return table.NumberCell(int64(pid))
		}},
		{Column: table.Column{Name: "tid", Unit: table.Count, Doc: "thread"}, Cell: func(row *T) table.Cell {
			_, tid := of(row)
			return table.NumberCell(tid)
		}},
	}
}

func StyleField[T any](of func(*T) profile.RangeStyle) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: "style", Doc: "PushPop nests, StartEnd need not"}, Cell: func(row *T) table.Cell { return table.TextCell(of(row).String()) }}
}

// NoteGraphs says how much GPU time is of CUDA graphs of which only the whole was recorded, ns.
func NoteGraphs(t *table.Table, whole int64) {
	if whole > 0 {
		t.Note("%s of GPU time is of whole CUDA graphs: nsys records their kernels with --cuda-graph-trace=node", table.InWords(whole))
	}
}
