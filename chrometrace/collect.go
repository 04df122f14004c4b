package chrometrace

import (
	"cmp"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A collector puts the batches of a file together, in order.
type collector struct {
	name string
	opt  Options

	Diags    parse.Diags
	docs     []document
	ranks    []docRank // of the documents that tell theirs
	kept     []keptBatch
	rowIDs   []*parse.RowID
	rows     map[rowKey]int32
	names    []parse.RowName
	open     map[int32][]openSlice
	paired   bool // there are slices whose end came later
	linked   bool // there are correlations
	external bool // there are some of [parse.ByExternal]
	chrome   bool
	total    int
	header   int // how many members the headers of docs have
}

// maxMembers bounds the members of the headers of a file. Kineto writes a dozen,
// and SGLang's merged files have those of every rank.
const maxMembers = 1 << 14

// A rowKey tells rows of a file apart: documents of several ranks have rows of their own.
type rowKey struct {
	part  string // of the document
	RowID parse.RowID
}

// A document is one of the documents that a file consists of.
type document struct {
	object                   bool
	part                     string // of the file, see [collector.separate]
	ranked                   bool   // it told its rank
	header                   []parse.Member
	absolute, relative, zero parse.Bounds
	zeroAt                   int64
	window                   parse.Window
	base                     int64 // what relative times count from
	known                    bool  // base is known
	dropZero                 bool  // events at time 0 have lost their time
	drawn                    bool  // see batch
	own                      bool  // written by Write
	unlinked                 bool  // and drawn, and not of ranks: correlations are of no use
}

// empty reports whether nothing of the document is of use.
func (d *document) empty() bool {
	return len(d.header) == 0 && !d.hasEvents()
}

// hasEvents reports whether the document has events so far.
func (d *document) hasEvents() bool { return d.absolute.N+d.relative.N+d.zero.N > 0 }

// until returns until when the document was recorded, as far as is known.
func (d *document) until() trace.Time {
	t := max(d.window.Told, d.window.Seen)
	if t < parse.AbsoluteFrom {
		t += trace.Time(d.base)
	}
	return t
}

// last returns the time of the last event, counted like t.
func (d *document) last(t trace.Time) trace.Time {
	switch {
	case t >= parse.AbsoluteFrom:
		return d.absolute.Last
	case d.zero.N == 0 || d.relative.N > 0 && d.relative.Last > d.zero.Last:
		return d.relative.Last
	}
	return d.zero.Last
}

// A keptBatch is what remains of a batch.
type keptBatch struct {
	doc     int
	rows    []int32 // of the file, by those of the batch
	Tables  parse.Tables
	events0 int // how many events come before
}

// keep takes a batch.
func (c *collector) keep(b *parse.Batch) {
	d := c.document(b)
	c.addHeader(d, b.Header)
	c.separate(d, b.Header)
	d.absolute.Merge(b.Absolute)
	d.relative.Merge(b.Relative)
	if d.zero.N == 0 {
		d.zeroAt = b.ZeroAt
	}
	d.zero.Merge(b.Zero)
	d.window.Merge(b.Window)
	c.total += b.Total
	d.drawn = d.drawn || b.Drawn
	c.chrome = c.chrome || b.Chrome
	for _, n := range b.Names {
		n.Part = cmp.Or(n.Part, d.part)
		c.names = append(c.names, n)
	}
	for _, x := range b.Diags {
		c.Diags.Add(x)
	}
	k := keptBatch{doc: len(c.docs) - 1, rows: make([]int32, len(b.Rows)), Tables: b.Tables}
	for i, id := range b.Rows {
		k.rows[i] = c.row(id, d.part)
	}
	if len(b.Rows) == 0 {
		return // nothing in it refers to anything
	}
	c.spans(b, k.rows)
	c.external = c.external || b.External
	if !c.linked && b.Linked {
		c.linked = true
		for i := range c.kept {
			c.kept[i].Tables.Redundant = nil
		}
	}
	if c.linked {
		k.Tables.Redundant = nil
	}
	if n := len(c.kept); n > 0 {
		k.events0 = c.kept[n-1].events0 + len(c.kept[n-1].Tables.Events)
	}
	c.kept = append(c.kept, k)
}

// document returns the document that b is of. A new one takes the place of one
// that was empty: a file may consist of millions.
func (c *collector) document(b *parse.Batch) *document {
	n := len(c.docs)
	switch {
	case n == 0 || b.NewDoc && !c.docs[n-1].empty():
		c.docs = append(c.docs, document{object: b.Object})
		n++
	case b.NewDoc:
		c.docs[n-1] = document{object: b.Object}
	}
	return &c.docs[n-1]
}

// addHeader adds members to the header of a document.
func (c *collector) addHeader(d *document, members []parse.Member) {
	if fit := maxMembers - c.header; len(members) > fit {
		c.Diags.Report(trace.TraceHeaderLong, members[fit].Offset, len(members)-fit)
		members = members[:fit]
	}
	d.header = append(d.header, members...)
	c.header += len(members)
}

// row returns the number of a row in the file, of a document that is the given part of it.
func (c *collector) row(id *parse.RowID, part string) int32 {
	key := rowKey{part, id.Key()}
	n, ok := c.rows[key]
	if !ok {
		n = int32(len(c.rowIDs))
		c.rowIDs = append(c.rowIDs, inPart(id, part))
		c.rows[key] = n
	}
	return n
}

// truncated reports what is missing at the end of the input.
func (c *collector) truncated(end parse.Ending) {
	if end.Err != nil || len(c.docs) == 0 || !c.docs[len(c.docs)-1].object {
		return // a bare list may lack its bracket
	}
	if end.Between {
		c.Diags.Report(trace.TraceTruncated, end.Offset, 1, "between two events")
	}
}

// joinExternal joins calls to what they launched by their "External id", in traces of ROCm by PyTorch before 2.4 that have no
// correlations, and reports whether it joined any. The ID is that of the call if no other call has it: otherwise it is that
// of an operator, and joins nothing.
func (c *collector) joinExternal(f *profile.Profile) (joined bool) {
	if !c.external {
		return false
	}
	calls, unique := map[int64]*profile.Slice{}, !c.linked
	for i := range f.Events {
		if e := &f.Events[i]; e.Correlation >= parse.ByExternal && e.IsLaunch() {
			unique = unique && calls[e.Correlation] == nil
			calls[e.Correlation] = e
		}
	}
	for i := range f.Events {
		e := &f.Events[i]
		if call := calls[e.Correlation]; unique && call != nil && e.Correlation >= parse.ByExternal && e != call {
			call.Correlation = e.Correlation - parse.ByExternal // twice, if it launched two
			e.Correlation, joined = call.Correlation, true
		}
	}
	for i := range f.Events {
		if e := &f.Events[i]; e.Correlation >= parse.ByExternal {
			e.Correlation = 0
		}
	}
	return joined
}
