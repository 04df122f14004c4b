package chrometrace

import "github.com/sgtrace/sgtrace/trace"

// A collector puts the batches of a file together, in order.
type collector struct {
	name string
	opt  Options

	diags
	docs   []document
	kept   []kept
	rowIDs []*rowID
	rows   map[rowID]int32
	names  []rowName
	open   map[int32][]openSlice
	paired bool // there are slices whose end came later
	linked bool // there are correlations
	chrome bool
	total  int
	header int // how many members the headers of docs have
}

// maxMembers bounds the members of the headers of a file. Kineto writes a dozen,
// and SGLang's merged files have those of every rank.
const maxMembers = 1 << 14

// A document is one of the documents that a file consists of.
type document struct {
	object                   bool
	header                   []member
	absolute, relative, zero bounds
	zeroAt                   int64
	base                     int64 // what relative times count from
	known                    bool  // base is known
	dropZero                 bool  // events at time 0 have lost their time
	drawn                    bool  // see batch
	own                      bool  // written by package writer
	unlinked                 bool  // and drawn, and not of ranks: correlations are of no use
}

// empty tells whether nothing of the document is of use.
func (d *document) empty() bool {
	return len(d.header) == 0 && d.absolute.n+d.relative.n+d.zero.n == 0
}

// last returns the time of the last event, counted like t.
func (d *document) last(t trace.Time) trace.Time {
	switch {
	case t >= absoluteFrom:
		return d.absolute.last
	case d.zero.n == 0 || d.relative.n > 0 && d.relative.last > d.zero.last:
		return d.relative.last
	}
	return d.zero.last
}

// A kept is what remains of a batch.
type kept struct {
	doc  int
	rows []int32 // of the file, by those of the batch
	tables
	events0 int // how many events come before
}

func newCollector(name string, opt Options) *collector {
	return &collector{name: name, opt: opt, rows: map[rowID]int32{}, open: map[int32][]openSlice{}}
}

// keep takes a batch.
func (c *collector) keep(b *batch) {
	d := c.document(b)
	c.addHeader(d, b.header)
	d.absolute.merge(b.absolute)
	d.relative.merge(b.relative)
	if d.zero.n == 0 {
		d.zeroAt = b.zeroAt
	}
	d.zero.merge(b.zero)
	c.total += b.total
	d.drawn = d.drawn || b.drawn
	c.chrome = c.chrome || b.chrome
	c.names = append(c.names, b.names...)
	for _, x := range b.diags {
		c.report(x.severity, x.code, x.offset, x.count, x.msg)
	}
	k := kept{doc: len(c.docs) - 1, rows: make([]int32, len(b.rows)), tables: b.tables}
	for i, id := range b.rows {
		k.rows[i] = c.row(id)
	}
	if len(b.rows) == 0 {
		return // nothing in it refers to anything
	}
	c.spans(b, k.rows)
	if !c.linked && len(b.launches)+len(b.work) > 0 {
		c.linked = true
		for i := range c.kept {
			c.kept[i].redundant = nil
		}
	}
	if c.linked {
		k.redundant = nil
	}
	if n := len(c.kept); n > 0 {
		k.events0 = c.kept[n-1].events0 + len(c.kept[n-1].events)
	}
	c.kept = append(c.kept, k)
}

// document returns the document that b is of. A new one takes the place of one
// that was empty: a file may consist of millions.
func (c *collector) document(b *batch) *document {
	n := len(c.docs)
	switch {
	case n == 0 || b.newDoc && !c.docs[n-1].empty():
		c.docs = append(c.docs, document{object: b.object})
		n++
	case b.newDoc:
		c.docs[n-1] = document{object: b.object}
	}
	return &c.docs[n-1]
}

// addHeader adds members to the header of a document.
func (c *collector) addHeader(d *document, members []member) {
	if fit := maxMembers - c.header; len(members) > fit {
		c.report(trace.DataLoss, "trace-header-long", members[fit].offset, len(members)-fit,
			"there is more beside the events than any profiler writes; the rest of it is left out")
		members = members[:fit]
	}
	d.header = append(d.header, members...)
	c.header += len(members)
}

// row returns the number of a row in the file.
func (c *collector) row(id *rowID) int32 {
	key := id.key()
	n, ok := c.rows[key]
	if !ok {
		n = int32(len(c.rowIDs))
		c.rowIDs = append(c.rowIDs, id)
		c.rows[key] = n
	}
	return n
}

// truncated reports what is missing at the end of the input.
func (c *collector) truncated(end ending) {
	if end.err != nil || len(c.docs) == 0 || !c.docs[len(c.docs)-1].object {
		return // a bare list may lack its bracket
	}
	if end.between {
		c.report(trace.DataLoss, "trace-truncated", end.offset, 1, "the file ends between two events; everything before is used")
	}
}
