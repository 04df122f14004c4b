package chrometrace

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/trace"
)

// leaveOutRepeated leaves out documents that the file has already, as a file does that
// somebody appended to itself. Those that tell their ranks are parts of the file, which are
// compared with those of all files.
func (c *collector) leaveOutRepeated() {
	repeated := make([]bool, len(c.docs))
	for i := range c.docs {
		same := slices.IndexFunc(c.docs[:i], func(before document) bool { return c.docs[i].repeats(&before) })
		if c.paired || same < 0 || !slices.Equal(c.eventsOf(same), c.eventsOf(i)) {
			continue
		}
		repeated[i] = true
		c.opt.Diags.Add(trace.CaptureRepeated.Of(c.name, fmt.Sprintf("its document %d", i+1), "events", fmt.Sprintf("document %d", same+1)))
		c.total -= c.docs[i].numEvents()
	}
	c.kept = slices.DeleteFunc(c.kept, func(k keptBatch) bool { return repeated[k.doc] })
	events := 0
	for i := range c.kept {
		c.kept[i].events0 = events
		events += len(c.kept[i].Tables.Events)
	}
}

// numEvents returns how many events the document has.
func (d *document) numEvents() int { return d.absolute.N + d.relative.N + d.zero.N }

// repeats reports whether two documents may hold the same.
func (d *document) repeats(o *document) bool {
	return d.hasEvents() && d.part == "" && o.part == "" && d.absolute == o.absolute && d.relative == o.relative && d.zero == o.zero &&
		slices.EqualFunc(d.header, o.header, func(a, b parse.Member) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) })
}

// An occurrence is an event without what refers to other tables.
type occurrence struct {
	at   trace.Time
	dur  int64 // ns
	name trace.Sym
	row  int32 // of the file
}

// eventsOf returns the events of a document.
func (c *collector) eventsOf(doc int) (list []occurrence) {
	for i := range c.kept {
		k := &c.kept[i]
		if k.doc != doc {
			continue
		}
		for _, e := range k.Tables.Events {
			list = append(list, occurrence{e.Time, e.Dur, e.Name, k.rows[e.Place.Row()]})
		}
	}
	return list
}
