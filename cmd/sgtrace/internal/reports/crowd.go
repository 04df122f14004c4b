package reports

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// Summing says how tables of very many ranks are shown to people.
type Summing struct {
	all   bool // list every rank
	hosts *document.Hosts
}

// ReadSumming reads the flags --all-ranks and --hosts. --limit and --sort also list every rank.
func ReadSumming(ctx *cli.Context) (s Summing, err error) {
	s.all = ctx.Bool("all-ranks") || ctx.IsSet("limit") || ctx.IsSet("sort")
	s.hosts, err = hosts(ctx)
	return s, err
}

// hosts reads the flag --hosts; nil if it is not given.
func hosts(ctx *cli.Context) (*document.Hosts, error) {
	name := ctx.String("hosts")
	if name == "" {
		return nil, nil
	}
	return readNamed("hosts", name, document.ReadHosts)
}

// Apply combines the ranks of a document into groups if it is printed as tables for people, and notes the
// groups of hosts all of whose ranks are stragglers.
func (s Summing) Apply(d *document.Document, in *Reading, format table.Format) {
	forPeople := format == table.FormatText && d.Text == nil || format == table.FormatMarkdown && d.Markdown == nil
	s.sum(d.Tables, in, forPeople)
}

// Folder returns a function that does the same for the tables of a page, in place.
func (s Summing) Folder(in *Reading) func([]*table.Table) {
	return func(tables []*table.Table) { s.sum(tables, in, true) }
}

// sum replaces tables of very many ranks by tables of few rows, if they are for people.
func (s Summing) sum(tables []*table.Table, in *Reading, forPeople bool) {
	c := &document.Ranks{HostOf: map[string]string{}, Hosts: s.hosts, Named: map[string]bool{}}
	ranks := in.ranks()
	for _, rank := range ranks {
		c.HostOf[rank.Name] = rank.Host
	}
	for _, t := range tables {
		if t.Name() != stragglers {
			continue
		}
		column, err := t.Column("rank")
		if err != nil {
			continue
		}
		for row := range t.Len() {
			c.Named[t.Cell(row, column).Text] = true
		}
		for _, group := range c.CompleteGroups(ranks) {
			t.Note("together these are %s", &group)
		}
	}
	if s.all || !forPeople {
		return
	}
	for i, t := range tables {
		tables[i] = c.Fold(t)
	}
}

// stragglers is the name of the table of stragglers.
const stragglers = "stragglers"

// ranks lists the ranks, each once.
func (in *Reading) ranks() (list []document.Rank) {
	known := map[string]bool{}
	add := func(name, host string, at place.Location) {
		if !known[name] {
			known[name] = true
			list = append(list, document.Rank{Name: name, Host: host, At: at})
		}
	}
	if p := in.Profiles; p != nil {
		for i := range p.Placements {
			at := place.Named(p.Ranks[i])
			at.Host = p.Placements[i].Host
			add(p.Ranks[i], at.Host, at)
		}
	}
	if s := in.Requests; s != nil {
		for p := range s.Procs {
			if s.Procs[p].Schedules && s.Procs[p].Role != request.Router {
				add(s.RankName(p), s.HostOf(p), place.NewLocation(s, p))
			}
		}
	}
	return list
}
