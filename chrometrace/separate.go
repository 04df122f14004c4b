package chrometrace

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Ranks that wrote into one file, one document after the other, become its parts, as if they had been merged.
// Pids cannot distinguish them: those of containers and devices are equal.

// A docRank is a document that names its rank.
type docRank struct {
	part string // of the file: "rank 3", or "rank 3 (2)" if that is taken
	rank int32
	doc  int // index of the document
}

// separate makes a part of a document whose header names a rank. members are the new members of that header.
// The rows of the first such document have no part until there is another.
func (c *collector) separate(d *document, members []parse.Member) {
	for _, x := range members {
		m := profile.Meta{Rank: -1, WorldSize: -1}
		if x.Key != "distributedInfo" || readHeader(&m, x.Key, x.Value) != nil || m.Rank < 0 {
			continue
		}
		last := len(c.ranks) - 1
		if d.ranked {
			if c.ranks[last].rank != m.Rank {
				c.Diags.Report(trace.TraceMixed, x.Offset, 1, c.ranks[last].rank, m.Rank)
			}
			continue
		}
		d.ranked = true
		r := docRank{part: fmt.Sprintf("rank %d", m.Rank), rank: m.Rank, doc: len(c.docs) - 1}
		if n := c.documentsOf(m.Rank); n > 0 {
			r.part += fmt.Sprintf(" (%d)", n+1)
		}
		c.ranks = append(c.ranks, r)
		switch {
		case len(c.ranks) == 1:
		case d.hasEvents():
			c.Diags.Report(trace.TraceMixed, x.Offset, 1, c.ranks[last].rank, m.Rank)
		default:
			d.part = r.part
		}
	}
}

// documentsOf counts the documents of a rank so far.
func (c *collector) documentsOf(rank int32) (n int) {
	return order.Count(c.ranks, func(d docRank) bool { return d.rank == rank })
}

// nameParts gives the first document its part, if there are several, and records the ranks of all.
func (c *collector) nameParts(m *profile.Meta) {
	if !slices.ContainsFunc(c.docs, func(d document) bool { return d.part != "" }) {
		c.fusedParts(m)
		return
	}
	first := c.ranks[0].part
	for i, id := range c.rowIDs {
		if id.Part == "" {
			c.rowIDs[i] = inPart(id, first)
		}
	}
	for i := range c.names {
		if n := &c.names[i]; n.Part == "" {
			n.Part = first
		}
	}
	m.Parts = map[string]string{}
	for _, r := range c.ranks {
		label := fmt.Sprintf("rank %d", r.rank)
		if host := c.docs[r.doc].host(); host != "" && !strings.Contains(host, "/") {
			label = host + "/" + label
		}
		m.Parts[r.part] = label
	}
}

// host returns the host that the header of a document names.
func (d *document) host() string {
	m := profile.Meta{}
	for _, x := range d.header {
		if x.Key == "host_name" {
			readHeader(&m, x.Key, x.Value)
		}
	}
	return m.Host
}

// inPart returns the row for a document that is the given part of a file.
func inPart(id *parse.RowID, part string) *parse.RowID {
	if part == "" || id.Part != "" {
		return id
	}
	moved := *id
	moved.Part = part
	return &moved
}

// rankProcess matches the names that tools that merge traces give to the processes of a rank: "RANK 3 - CPU"
// and "RANK 3 - GPU" (TraceLens), "python_rank3" (Triton-distributed), or "rank 3".
var rankProcess = regexp.MustCompile(`^(?:.*[ _-])?(?i:rank)[ _]?(\d{1,6})(?: - (?:CPU|GPU))?$`)

// fusedParts makes parts of processes that are named after ranks, if there are several ranks. Tools that name
// them so omit headers, and keep pids and correlations distinct.
func (c *collector) fusedParts(m *profile.Meta) {
	if slices.ContainsFunc(c.docs, func(d document) bool { return d.own }) {
		return // our writer names the ranks, if there are any
	}
	of, parts := map[string]string{}, map[string]string{} // by pid
	first := ""
	for i := range c.names {
		n, is := &c.names[i], profile.Row{}
		if n.Apply(&is); n.Part != "" {
			return // SGLang has put the rank in front of pids
		}
		if found := rankProcess.FindStringSubmatch(is.Process); found != nil {
			part := "rank " + found[1]
			first = cmp.Or(first, part)
			parts[part], of[n.PID] = part, part
		}
	}
	if len(parts) < 2 {
		return
	}
	for i, id := range c.rowIDs {
		part := of[id.PID]
		if id.OfProfiler() {
			part = first // unknown owner
		}
		c.rowIDs[i] = inPart(id, part)
	}
	for i := range c.names {
		c.names[i].Part = of[c.names[i].PID]
	}
	m.Parts = parts
}

// leaveOutRepeated drops documents that the file already has, as when somebody appended a file to itself.
// Documents that name their ranks are parts of the file, which are compared with those of all files.
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

// numEvents returns the number of events in the document.
func (d *document) numEvents() int { return d.absolute.N + d.relative.N + d.zero.N }

// repeats reports whether two documents may have the same content.
func (d *document) repeats(o *document) bool {
	return d.hasEvents() && d.part == "" && o.part == "" && d.absolute == o.absolute && d.relative == o.relative && d.zero == o.zero &&
		slices.EqualFunc(d.header, o.header, func(a, b parse.Member) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) })
}

// An occurrence is an event without its references to other tables.
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
