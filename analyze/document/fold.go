package document

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

const (
	// Many is the number of ranks above which a table is folded.
	Many = 64
	// maxGroups is the largest number of groups with a row each.
	maxGroups = 16
	// rankColumn is the name of the column with the rank of a row.
	rankColumn = "rank"
)

// notAdded are columns whose numbers are identifiers.
var notAdded = []string{"device", "stream", "gpu"}

// Ranks describes the ranks in tables.
type Ranks struct {
	HostOf map[string]string // by rank, as tables name it
	Hosts  *Hosts            // nil if groups of hosts are unknown
	Named  map[string]bool   // ranks named by findings, which keep their rows
}

// Fold returns the table, if it has more than [Many] ranks, with a few rows in place of the ranks that no finding names:
// the median of each group of hosts, unless there are too many groups, and the smallest, the median, and the largest value
// of all. Rows that differ in other texts are folded separately; if that leaves too many rows, the table is cut instead.
func (c *Ranks) Fold(t *table.Table) *table.Table {
	at, err := t.Column(rankColumn)
	if err != nil || t.Columns[at].Unit != table.Text {
		return cut(t, len(c.HostOf))
	}
	ranks := map[string]bool{}
	for row := range t.Len() {
		ranks[t.Cell(row, at).Text] = true
	}
	if len(ranks) <= Many {
		return t
	}
	f := &fold{Ranks: c, t: t, rank: at, ranks: ranks}
	f.read()
	f.level = c.levelFor(f.ranks)
	out := f.rows()
	if len(out) > t.Len()/2 {
		return cut(t, len(f.ranks))
	}
	folded := table.New(t.Schema, t.Title, out, fieldsOf(t.Columns))
	folded.Part, folded.Footnotes = t.Part, slices.Clone(t.Footnotes)
	folded.Note("%s are summed up; p50 is their median, nearest rank. --all-ranks lists each, and so do CSV and JSON", words.Counted(len(f.ranks)-f.named, "rank"))
	return folded
}

// cut keeps only the first rows of a table if there are many ranks.
func cut(t *table.Table, ranks int) *table.Table {
	if ranks > Many && t.Len() > Many {
		t.Limit(Many)
		t.Note("there are %s: --all-ranks lists all rows, and so do CSV and JSON", words.Counted(ranks, "rank"))
	}
	return t
}

// fieldsOf returns the given columns for rows that are lists of cells.
func fieldsOf(columns []table.Column) []table.Field[[]table.Cell] {
	fields := make([]table.Field[[]table.Cell], len(columns))
	for i, column := range columns {
		fields[i] = table.Field[[]table.Cell]{Column: column, Cell: func(row *[]table.Cell) table.Cell { return (*row)[i] }}
	}
	return fields
}

// A fold is a table being folded.
type fold struct {
	*Ranks
	t     *table.Table
	rank  int // column of the rank
	level int // level of the groups, or -1
	ranks map[string]bool
	named int                        // number of ranks that findings name
	kinds order.Groups[string, kind] // by all texts except the rank
}

// A kind is a set of rows that differ only in ranks and numbers.
type kind struct {
	kept [][]table.Cell
	rest [][]table.Cell
}

// read groups the rows by kind.
func (f *fold) read() {
	for rank := range f.ranks {
		if f.Named[rank] {
			f.named++
		}
	}
	for row := range f.t.Len() {
		cells := make([]table.Cell, len(f.t.Columns))
		var texts []string
		for i, column := range f.t.Columns {
			cells[i] = f.t.Cell(row, i)
			if i != f.rank && !column.Detail && column.Unit == table.Text {
				texts = append(texts, cells[i].Text)
			}
		}

		k := f.kinds.Of(strings.Join(texts, "\x00"))
		if f.Named[cells[f.rank].Text] {
			k.kept = append(k.kept, cells)
		} else {
			k.rest = append(k.rest, cells)
		}
	}
}

// levelFor returns the level with the smallest groups that are few enough for a row each; -1 if there is none.
func (c *Ranks) levelFor(ranks map[string]bool) int {
	for level := range c.Hosts.levels() {
		groups := map[string]bool{}
		for rank := range ranks {
			groups[c.Hosts.group(level, c.host(rank))] = true
		}
		if len(groups) > 1 && len(groups) <= maxGroups && !groups[""] {
			return level
		}
	}
	return -1
}

// host returns the host of a rank, whose name may be followed by a device; "" if unknown.
func (c *Ranks) host(rank string) string {
	for name := rank; name != ""; {
		if host, ok := c.HostOf[name]; ok {
			return host
		}
		i := strings.LastIndexByte(name, ' ')
		name = name[:max(i, 0)]
	}
	return ""
}

// rows returns the rows of the folded table.
func (f *fold) rows() (out [][]table.Cell) {
	for _, k := range f.kinds.List {
		out = append(out, k.kept...)
		if len(k.rest) < 3 {
			out = append(out, k.rest...)
			continue
		}
		for _, group := range f.groups(k.rest) {
			out = append(out, f.sum(group.rows, group.title+": p50", median))
		}
		all := f.countOf(k.rest)
		out = append(out, f.sum(k.rest, all+": least", first), f.sum(k.rest, all+": p50", median), f.sum(k.rest, all+": most", last))
	}
	return out
}

// countOf returns how many ranks some rows are of, in words: "1,011 other ranks on 126 hosts".
func (f *fold) countOf(rows [][]table.Cell) string {
	ranks, hosts := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		rank := row[f.rank].Text
		ranks[rank], hosts[f.host(rank)] = true, true
	}
	text := words.Counted(len(ranks), "rank")
	if f.named > 0 {
		text = words.Counted(len(ranks), "other rank")
	}
	if len(hosts) > 1 {
		text += " on " + words.Counted(len(hosts), "host")
	}
	return text
}

// A group is the rows of the ranks in a group of hosts.
type group struct {
	title string
	rows  [][]table.Cell
}

// groups returns the groups of f.level, sorted by name; nil if there are too many.
func (f *fold) groups(rows [][]table.Cell) []group {
	if f.level < 0 {
		return nil
	}
	var by order.Groups[string, group]
	for _, row := range rows {
		name := f.Hosts.group(f.level, f.host(row[f.rank].Text))
		g := by.Of(name)
		g.title, g.rows = f.Hosts.title(f.level, name), append(g.rows, row)
	}
	slices.SortStableFunc(by.List, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(a.title), len(b.title)), strings.Compare(a.title, b.title))
	})
	return by.List
}

// Functions that choose one of n sorted values.
func first(int) int    { return 0 }
func last(n int) int   { return n - 1 }
func median(n int) int { return (n - 1) / 2 } // nearest rank

// sum makes one row of several: with their common texts, and, in each column of numbers, the value that which chooses.
func (f *fold) sum(rows [][]table.Cell, title string, which func(n int) int) []table.Cell {
	out := make([]table.Cell, len(f.t.Columns))
	for i, column := range f.t.Columns {
		switch {
		case i == f.rank:
			out[i] = table.TextCell(title)
		case column.Detail || slices.Contains(notAdded, column.Name):
			out[i] = table.Cell{Unknown: true}
		case column.Unit == table.Text:
			out[i] = rows[0][i]
		default:
			out[i] = choose(column.Unit, rows, i, which)
		}
	}
	return out
}

// choose returns the cell of a column that which chooses among the known ones, in order.
func choose(unit table.Unit, rows [][]table.Cell, column int, which func(n int) int) table.Cell {
	var known []table.Cell
	for _, row := range rows {
		if c := row[column]; !c.Unknown {
			known = append(known, c)
		}
	}
	if len(known) == 0 {
		return table.Cell{N: request.Unknown, Unknown: true}
	}
	slices.SortFunc(known, func(a, b table.Cell) int {
		if unit.Real() {
			return cmp.Compare(a.Share, b.Share)
		}
		return cmp.Compare(a.N, b.N)
	})
	c := known[which(len(known))]
	c.Tone = table.Plain
	return c
}
