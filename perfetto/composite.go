package perfetto

import (
	"hash/maphash"

	"github.com/sgtrace/sgtrace/trace"
)

// composites remembers how arrays and dictionaries were encoded. Few of them
// differ, the shapes of operators and the grids of kernels above all, and
// looking one up costs a fraction of encoding it. Ids never change, so neither
// do the encoded bytes.
type composites struct {
	seed maphash.Seed
	slot []composite // a cache: what comes later displaces what was there
}

type composite struct {
	name  uint32 // id of the argument's name; 0 is an empty slot
	kind  trace.ArgKind
	split uint16
	text  []byte // the raw value, and from split on what it became
}

const (
	compositeSlots = 1 << 11
	// maxComposite is the length of the longest raw value to remember: a cache
	// holds a few megabytes at most.
	maxComposite = 256
)

func newComposites() composites {
	return composites{maphash.MakeSeed(), make([]composite, compositeSlots)}
}

// composite appends the fields that hold an array or a dictionary.
func (e *encoder) composite(b []byte, a trace.Arg, r root) []byte {
	raw := a.Bytes()
	if len(raw) > maxComposite {
		return e.value(b, a, r)
	}
	hash := maphash.Bytes(e.composites.seed, raw) + uint64(r.name.id())
	c := &e.composites.slot[hash%compositeSlots]
	if c.name == r.name.id() && c.kind == a.Kind && string(c.text[:c.split]) == string(raw) {
		return append(b, c.text[c.split:]...)
	}
	before := len(b)
	b = e.value(b, a, r)
	if !e.missing {
		c.name, c.kind, c.split = r.name.id(), a.Kind, uint16(len(raw))
		c.text = append(append(c.text[:0], raw...), b[before:]...)
	}
	return b
}
