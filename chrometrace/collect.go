package chrometrace

import (
	"cmp"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A collector combines the batches of a file, in order.
type collector struct {
	name string
	opt  Options

	Diags    parse.Diags
	docs     []document
	ranks    []docRank // of the documents that name their rank
	kept     []keptBatch
	rowIDs   []*parse.RowID
	rows     map[rowKey]int32
	names    []parse.RowName
	open     map[int32][]openSlice
	paired   bool // some slices were paired from a begin and an end
	linked   bool // some events have correlations
	external bool // some correlations are [parse.ByExternal]
	chrome   bool
	planes   map[int32]int32 // the rows of their groups for rows with tasks of Ascend's collectives; nil if there are none
	total    int
	header   int // number of members in the headers of docs
}

// maxMembers bounds the members of the headers of a file. Kineto writes a dozen, and SGLang's merged files have
// those of every rank.
const maxMembers = 1 << 14

// A rowKey identifies a row of a file: documents of several ranks have rows of their own.
type rowKey struct {
	part  string // of the document
	RowID parse.RowID
}

// A document is one of the documents that a file consists of.
type document struct {
	object                   bool
	part                     string // of the file, see [collector.separate]
	ranked                   bool   // it named its rank
	header                   []parse.Member
	absolute, relative, zero parse.Bounds
	zeroAt                   int64
	window                   parse.Window
	base                     int64 // origin of relative times
	known                    bool  // base is known
	dropZero                 bool  // events at time 0 are invalid
	drawn                    bool  // see parse.Batch
	own                      bool  // written by Write
	unlinked                 bool  // own and drawn, and without ranks: correlations are useless
}

// empty reports whether the document has nothing of use.
func (d *document) empty() bool {
	return len(d.header) == 0 && !d.hasEvents()
}

// hasEvents reports whether the document has events so far.
func (d *document) hasEvents() bool { return d.absolute.N+d.relative.N+d.zero.N > 0 }

// until returns the end of the recording of the document, as far as known.
func (d *document) until() trace.Time {
	t := max(d.window.Told, d.window.Seen)
	if t < parse.AbsoluteFrom {
		t += trace.Time(d.base)
	}
	return t
}

// last returns the time of the last event, on the clock of t.
func (d *document) last(t trace.Time) trace.Time {
	switch {
	case t >= parse.AbsoluteFrom:
		return d.absolute.Last
	case d.zero.N == 0 || d.relative.N > 0 && d.relative.Last > d.zero.Last:
		return d.relative.Last
	}
	return d.zero.Last
}

// A keptBatch is the part of a batch that is kept.
type keptBatch struct {
	doc     int
	rows    []int32 // rows of the file, by row of the batch
	Tables  parse.Tables
	events0 int // number of events in the batches before
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
		return // nothing in it refers to other records
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

// document returns the document of b. A new document replaces an empty one: a file may consist of millions.
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

// row returns the number of a row in the file, for a document that is the given part of it.
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

// truncated reports that the end of the input is missing.
func (c *collector) truncated(end parse.Ending) {
	if end.Err != nil || len(c.docs) == 0 || !c.docs[len(c.docs)-1].object {
		return // a bare list may lack its bracket
	}
	if end.Between {
		c.Diags.Report(trace.TraceTruncated, end.Offset, 1, "between two events")
	}
}

// joinExternal joins calls to the work that they launched by "External id", and reports whether it joined any.
// This is for traces of ROCm by PyTorch before 2.4 without correlations. The ID is a call's if no two calls
// share one; otherwise it is an operator's, and joins nothing.
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
			call.Correlation = e.Correlation - parse.ByExternal // set twice if it launched two
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
