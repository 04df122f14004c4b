package document

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// A row is a row in a table of ranks.
type row struct {
	rank, kind string
	ns         int64
	share      float64
}

func tableOf(rows []row) *table.Table {
	return table.New("sgtrace.report.test/v1", "Test", rows, []table.Field[row]{
		table.TextColumn("rank", "", func(r *row) string { return r.rank }),
		table.TextColumn("kind", "", func(r *row) string { return r.kind }),
		table.NsColumn("took", "", func(r *row) int64 { return r.ns }),
		table.ShareColumn("part", "", func(r *row) float64 { return r.share }),
		{Column: table.Column{Name: "device", Unit: table.Count}, Cell: func(*row) table.Cell { return table.Cell{N: 3} }},
	})
}

// ranksOn makes the rows of hosts with eight ranks each, in random order.
func ranksOn(hosts int, kinds ...string) (c *Ranks, rows []row) {
	rng := rand.New(rand.NewPCG(1, uint64(hosts)))
	c = &Ranks{HostOf: map[string]string{}, Named: map[string]bool{}}
	for i := range 8 * hosts {
		rank := fmt.Sprintf("rank %d", i)
		c.HostOf[rank] = fmt.Sprintf("node%d", i/8)
		for _, kind := range kinds {
			rows = append(rows, row{rank, kind, rng.Int64N(1e6), rng.Float64()})
		}
	}
	rng.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	return c, rows
}

// lines returns the rows of a table: the texts of each row, its time, and its share.
func lines(t *table.Table) (out []string) {
	for i := range t.Len() {
		out = append(out, fmt.Sprintf("%s|%s|%d|%.4f", t.Cell(i, 0).Text, t.Cell(i, 1).Text, t.Cell(i, 2).N, t.Cell(i, 3).Share))
	}
	return out
}

// Each number in a folded table is the value of a rank at a certain place in the order of all ranks.
func TestFold(t *testing.T) {
	for _, hosts := range []int{9, 16, 17, 200} {
		c, rows := ranksOn(hosts, "prefill", "decode")
		c.Named["rank 11"] = true
		folded := c.Fold(tableOf(rows))
		groups := hosts
		if hosts > maxGroups {
			groups = 0
		}
		if want := 2 * (1 + groups + 3); folded.Len() != want {
			t.Fatalf("%d hosts: %d rows, want %d:\n%s", hosts, folded.Len(), want, strings.Join(lines(folded), "\n"))
		}
		for _, line := range lines(folded) {
			name, rest, _ := strings.Cut(line, "|")
			kind, _, _ := strings.Cut(rest, "|")
			if want := expected(c, rows, name, kind); rest != want {
				t.Errorf("%d hosts: %s has %s, want %s", hosts, name, rest, want)
			}
		}
		if cell := folded.Cell(folded.Len()-1, 4); !cell.Unknown {
			t.Errorf("devices are summed up to %v", cell)
		}
		if note := folded.Footnotes[len(folded.Footnotes)-1]; !strings.HasPrefix(note, fmt.Sprintf("%s ranks are summed up; ", thousands(8*hosts-1))) {
			t.Errorf("the note says %q", note)
		}
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// expected returns the cells of a row in a folded table, without its name.
func expected(c *Ranks, rows []row, name, kind string) string {
	group, which, summed := strings.Cut(name, ": ")
	var ns []int64
	var share []float64
	for _, r := range rows {
		host := c.HostOf[r.rank]
		is := r.rank == name || summed && r.rank != "rank 11" && (host == group || strings.Contains(group, "other ranks"))
		if r.kind == kind && is {
			ns, share = append(ns, r.ns), append(share, r.share)
		}
	}
	slices.Sort(ns)
	slices.Sort(share)
	at := map[string]int{"": 0, "least": 0, "p50": (len(ns) - 1) / 2, "most": len(ns) - 1}[which]
	return fmt.Sprintf("%s|%d|%.4f", kind, ns[at], share[at])
}

// Tables of few ranks are not folded. Tables with rows that differ in more than the rank are truncated.
func TestFoldLeaves(t *testing.T) {
	c, rows := ranksOn(8, "decode")
	if few := tableOf(rows); c.Fold(few) != few || few.Len() != 64 {
		t.Errorf("64 ranks are folded to %d rows", few.Len())
	}
	c, rows = ranksOn(20, "decode")
	for i := range rows {
		rows[i].kind = fmt.Sprint(i)
	}
	many := c.Fold(tableOf(rows))
	if note := many.Footnotes[len(many.Footnotes)-1]; many.Len() != Many || note != "there are 160 ranks: --all-ranks lists all rows, and so do CSV and JSON" {
		t.Errorf("%d rows are left, and it says %q", many.Len(), note)
	}
}

const hostFile = "\ufeffhost,node,rack\n# the old room\nnode0,n0,r1\nnode1,n0,r1\n\nnode2, n1, r2\nnode3,n1,r2\n"

// Each group of hosts has a row, at the finest level that has few enough groups. A
// group has a name of its own if all of its ranks are named.
func TestGroups(t *testing.T) {
	hosts, err := ReadHosts(strings.NewReader(hostFile), "hosts.csv")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := ranksOn(4)
	c.Hosts = hosts
	var ranks []Rank
	for i := range 32 {
		ranks = append(ranks, Rank{Name: fmt.Sprintf("rank %d", i), Host: fmt.Sprintf("node%d", i/8)})
		c.Named[ranks[i].Name] = i < 16 || i >= 24
	}
	var got []string
	for _, g := range c.CompleteGroups(ranks) {
		got = append(got, g.String())
	}
	if want := []string{"all 16 ranks of rack r1", "all 8 ranks of node3"}; !slices.Equal(got, want) {
		t.Errorf("named together are %q", got)
	}
	if got := hosts.group(2, "node2.cluster.local"); got != "r2" {
		t.Errorf("a host with a domain is in rack %q", got)
	}
	c, rows := ranksOn(40, "decode")
	c.Hosts = &Hosts{Levels: []string{"rack"}, groups: map[string][]string{}}
	for i := range 40 {
		c.Hosts.groups[fmt.Sprintf("node%d", i)] = []string{fmt.Sprintf("r%d", i/4)}
	}
	got = lines(c.Fold(tableOf(rows)))
	if len(got) != 13 || !strings.HasPrefix(got[0], "rack r0: p50|") || !strings.HasPrefix(got[9], "rack r9: p50|") || !strings.HasPrefix(got[10], "320 ranks on 40 hosts: least|") {
		t.Errorf("40 hosts in 10 racks are\n%s", strings.Join(got, "\n"))
	}
}

// Errors in a file of hosts name their place in the file.
func TestReadHostsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "hosts.csv: is empty; want a header such as host,node,rack",
		"name,rack\n":                         "hosts.csv:1: want a header such as host,node,rack, the smallest group first; it is \"name,rack\"",
		"host\na\n":                           "hosts.csv:1: want a header such as host,node,rack, the smallest group first; it is \"host\"",
		"host,rack\na,r1\nb\n":                "hosts.csv:3: wrong number of fields",
		"host,rack\n,r1\n":                    "hosts.csv:2: no host",
		"host,rack\na,r1\nb,r1\na,r1\na,r2\n": "hosts.csv:5: a is there twice, in different groups",
		"host,rack\n# why\na,\"r1\nb,r2\n":    "hosts.csv:4: extraneous or missing \" in quoted-field",
		"host,rack\na,r1\n\"b\"x,r2\nc,r3\n":  "hosts.csv:3: extraneous or missing \" in quoted-field",
	} {
		if _, err := ReadHosts(strings.NewReader(text), "hosts.csv"); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
