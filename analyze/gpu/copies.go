package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A CopyKind is all copies or fills of one operation on a device, such as
// "[CUDA memcpy Host-to-Device]".
type CopyKind struct {
	Name   string
	Copied walk.Copied
}

// copyKinds sums up copies by the symbol of their operation.
type copyKinds map[trace.Sym]*CopyKind

func (k copyKinds) of(name trace.Sym) *CopyKind {
	c := k[name]
	if c == nil {
		c = &CopyKind{}
		k[name] = c
	}
	return c
}

func (k copyKinds) add(c *profile.Copy) { k.of(c.Name).Copied.Add(c) }

func (k copyKinds) join(o copyKinds) {
	for name, c := range o {
		k.of(name).Copied.Join(&c.Copied)
	}
}

// list returns the kinds, those that took longest first.
func (k copyKinds) list(syms *trace.Symbols) []CopyKind {
	var out []CopyKind
	for name, c := range k {
		c.Name = syms.Name(name)
		out = append(out, *c)
	}
	sortCopies(out)
	return out
}

func sortCopies(list []CopyKind) {
	slices.SortFunc(list, func(a, b CopyKind) int {
		return cmp.Or(cmp.Compare(b.Copied.Time, a.Copied.Time), cmp.Compare(a.Name, b.Name))
	})
}
