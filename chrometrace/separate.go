package chrometrace

import (
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

// Ranks that wrote into one file, one document behind the other, become its parts, as if
// somebody had merged them. Pids cannot tell them apart: those of containers and devices
// are equal.

// A docRank is a document that tells its rank.
type docRank struct {
	part string // of the file: "rank 3", "rank 3 (2)" if that is there already
	rank int32
	doc  int // its number
}

// separate makes a part of a document whose header, of which members were met, tells a
// rank. The rows of the first such document have no part until there is another.
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

// nameParts gives the first document its part, if there are several, and tells the ranks
// of all.
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

// inPart returns the row of a document that is the given part of a file.
func inPart(id *parse.RowID, part string) *parse.RowID {
	if part == "" || id.Part != "" {
		return id
	}
	moved := *id
	moved.Part = part
	return &moved
}

// rankProcess is what tools that merge traces call the processes of a rank: "RANK 3 - CPU" and
// "RANK 3 - GPU" (TraceLens), "python_rank3" (Triton-distributed), or "rank 3".
var rankProcess = regexp.MustCompile(`^(?:.*[ _-])?(?i:rank)[ _]?(\d{1,6})(?: - (?:CPU|GPU))?$`)

// fusedParts makes parts of processes that are called after ranks, if there are several
// ranks. Tools that call them so leave out headers, and move pids and correlations apart.
func (c *collector) fusedParts(m *profile.Meta) {
	if slices.ContainsFunc(c.docs, func(d document) bool { return d.own }) {
		return // our writer tells ranks, if there are any
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
			part = first // nothing tells whose it is
		}
		c.rowIDs[i] = inPart(id, part)
	}
	for i := range c.names {
		c.names[i].Part = of[c.names[i].PID]
	}
	m.Parts = parts
}
