package storage

import (
	"encoding/binary"
	"math"
)

// A sieve determines which rows of a table lie outside of a [Window] without decoding them: times are the first
// two columns of event tables. It records the times of each leaf, so that the next scan does not read leaves
// whose rows all lie outside. The order of rows alone does not show that, as a long call or kernel may start
// any time before the window.
type sieve struct {
	Window Window
	number int // index of the column in the table; or [NoColumn]
	of     *database
	key    zoneKey
	zones  []zone // of the leaves scanned so far
	known  *zones // of all leaves, from an earlier scan; nil if there was none
	jumps  []jump // over leaves of known
}

// A zone is some leaves on consecutive pages, and the ranges of the times and numbers of all their rows.
type zone struct {
	from, to    int64
	least, most int64
	page        uint32 // the first page
	pages, rows uint32
}

// maxOfZone is the largest number of leaves in a zone.
const maxOfZone = maxHeld

// A zoneKey identifies zones: their table and number column.
type zoneKey struct {
	table  string
	number int
}

// A jump is the number of rows before a leaf.
type jump struct {
	page uint32
	rows int64
}

// zones are the zones of all leaves of a table.
type zones struct {
	list  []zone
	rows  int64
	holes int64 // see [tree]
}

// sift sets a tree to pass the rows relevant to a window. It does nothing if the times are not the first
// columns.
func (d *database) sift(t *tree, table string, w *Window) {
	isInteger := func(column int) bool { return t.rows.columns[column] == integers }
	if t.rows.selected[w.Start] != 0 || t.rows.selected[w.End] != 1 || !isInteger(0) || !isInteger(1) {
		return
	}
	s := &sieve{Window: *w, number: NoColumn, of: d}
	if w.Number != NoColumn {
		if s.number = t.rows.selected[w.Number]; s.number < 2 || !isInteger(s.number) {
			return
		}
	}
	s.key = zoneKey{table, s.number}
	d.zonesMu.Lock()
	s.known = d.zones[s.key]
	d.zonesMu.Unlock()
	t.sieve = s
	if s.known != nil {
		t.pages.path, t.pages.began = [][]uint32{s.wanted()}, true
	}
}

// keep keeps the zones of all leaves of a table.
func (d *database) keep(s *sieve, all *zones) {
	d.zonesMu.Lock()
	defer d.zonesMu.Unlock()
	if d.zones == nil {
		d.zones = map[zoneKey]*zones{}
	}
	d.zones[s.key] = all
}

// wanted returns the pages of the known leaves that are relevant.
func (s *sieve) wanted() (pages []uint32) {
	before := int64(0)
	for i := range s.known.list {
		z := &s.known.list[i]
		if z.to >= s.Window.From && z.from <= s.Window.To || s.number != NoColumn && z.most >= s.Window.Least && z.least <= s.Window.Most {
			s.jumps = append(s.jumps, jump{z.page, before})
			for n := range z.pages {
				pages = append(pages, z.page+n)
			}
		}
		before += int64(z.rows)
	}
	return pages
}

// mark marks the rows of a leaf that lie outside.
func (s *sieve) mark(leaf page, number uint32, cells []cell) {
	z := s.zoneOf(number)
	z.rows += uint32(len(cells))
	data := leaf.data[:len(leaf.data)+slack]
	for i := range cells {
		c := &cells[i]
		start, end, number, ok := s.times(data[c.from:], c.to-c.from)
		if !ok {
			z.from, z.to = math.MinInt64, math.MaxInt64
			continue
		}
		z.from, z.to = min(z.from, start), max(z.to, end)
		z.least, z.most = min(z.least, number), max(z.most, number)
		c.outside = (end < s.Window.From || start > s.Window.To) && (s.number == NoColumn || number < s.Window.Least || number > s.Window.Most)
	}
}

// zoneOf returns the zone for the next leaf.
func (s *sieve) zoneOf(page uint32) *zone {
	if n := len(s.zones); n > 0 {
		if z := &s.zones[n-1]; z.page+z.pages == page && z.pages < maxOfZone {
			z.pages++
			return z
		}
	}
	s.zones = append(s.zones, zone{from: math.MaxInt64, to: math.MinInt64, least: math.MaxInt64, most: math.MinInt64, page: page, pages: 1})
	return &s.zones[len(s.zones)-1]
}

// times returns the times and the number of the row in b, which has n bytes; eight more are readable. ok is
// false if they are not easily found.
func (s *sieve) times(b []byte, n int) (start, end, number int64, ok bool) {
	head := int(b[0])
	if head < 1+max(2, s.number+1) || head >= 0x80 || head > n || !isInteger(uint64(b[1])) || !isInteger(uint64(b[2])) {
		return 0, 0, 0, false
	}
	first, second := kindSizes[b[1]], kindSizes[b[2]]
	at := head + first + second
	if at > n {
		return 0, 0, 0, false
	}
	start, end = integerOf(b[head:], first), integerOf(b[head+first:], second)
	if s.number == NoColumn {
		return start, end, 0, true
	}
	for _, kind := range b[3 : 1+s.number] {
		if kind >= kindBytes {
			return 0, 0, 0, false
		}
		at += kindSizes[kind]
	}
	switch kind := b[1+s.number]; {
	case kind == kindNull || kind == kindZero:
		return start, end, 0, true
	case kind == kindOne:
		return start, end, 1, true
	case isInteger(uint64(kind)) && at+kindSizes[kind] <= n:
		return start, end, integerOf(b[at:], kindSizes[kind]), true
	}
	return 0, 0, 0, false
}

// integerOf reads an integer of up to eight bytes.
func integerOf(b []byte, size int) int64 {
	return int64(binary.BigEndian.Uint64(b)) >> (64 - 8*size)
}
