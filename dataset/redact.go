package dataset

import (
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Redact gives what names the input pseudonyms, before it is read: by them the dataset knows
// whether it has the input. [Write] does so for the rest.
func (a *About) Redact(m *redact.Maker) {
	m.LearnFile(a.Path)
	m.LearnFile(a.Name)
	m.LearnLabel(a.Label)
	a.Said = m.Says(a.Name)
	a.Name, a.Path, a.Label, a.Hash = m.Path(a.Name), m.Path(a.Path), m.Label(a.Label), m.Hash(a.Hash)
}

// redactRest redacts what reading the input told.
func (a *About) redactRest(m *redact.Maker) (err error) {
	a.Unusable, a.Print = m.Scrub(a.Unusable), m.Text(a.Print)
	for _, list := range []**inventory.Inventory{&a.Inspected, &a.Listed} {
		if *list != nil && err == nil {
			*list, err = redact.Struct(m, *list)
		}
	}
	return err
}

// learn tells what makes pseudonyms which hosts and ids the input has.
func (c *Content) learn() {
	m := c.Pseudonyms
	if d := c.Spans; d != nil {
		for i := range d.Resources {
			c.learnAttributes(d.Resources[i].Args)
		}
		for i := range d.Len() {
			c.learnAttributes(d.Span(i).Args)
		}
	}
	if c.Source == nil {
		return
	}
	for i, p := range c.Source.Profiles {
		m.LearnHost(p.Meta.Host)
		for _, label := range p.Meta.Parts {
			m.LearnLabel(label)
		}
		for _, is := range c.Are[i] {
			m.LearnHost(is.Host)
		}
	}
}

func (c *Content) learnAttributes(id trace.ArgsID) {
	for a := range c.Args.All(id) {
		if a.Kind == trace.ArgString {
			c.Pseudonyms.LearnAttribute(c.Syms.Name(a.Key), string(a.Bytes()))
		}
	}
}
