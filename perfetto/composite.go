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
	name  uint32 // id of the argument's name, or typedComposite and the number of its field; 0 is an empty slot
	kind  trace.ArgKind
	split uint16
	text  []byte // the raw value, and from split on what it became
}

const (
	compositeSlots = 1 << 11
	// maxComposite is the length of the longest raw value to remember: a cache
	// holds a few megabytes at most.
	maxComposite = 256
	// typedComposite marks fields of typed arguments.
	typedComposite = 1 << 31
)

func newComposites() composites {
	return composites{maphash.MakeSeed(), make([]composite, compositeSlots)}
}

// find returns the slot for the value of an argument, and whether it is there.
// Nothing is remembered of values that are too long.
func (c *composites) find(a trace.Arg, name uint32) (_ *composite, known bool) {
	raw := a.Bytes()
	if len(raw) > maxComposite {
		return nil, false
	}
	hash := maphash.Bytes(c.seed, raw) + uint64(name)
	slot := &c.slot[hash%compositeSlots]
	return slot, slot.name == name && slot.kind == a.Kind && string(slot.text[:slot.split]) == string(raw)
}

// keep makes the slot hold what the value of an argument became.
func (c *composite) keep(a trace.Arg, name uint32, encoded []byte) {
	if c == nil {
		return
	}
	raw := a.Bytes()
	c.name, c.kind, c.split = name, a.Kind, uint16(len(raw))
	c.text = append(append(c.text[:0], raw...), encoded...)
}

// encoded is what the value became.
func (c *composite) encoded() []byte { return c.text[c.split:] }

// composite appends the fields that hold an array or a dictionary.
func (e *encoder) composite(b []byte, a trace.Arg, r root) []byte {
	c, known := e.composites.find(a, r.name.id())
	if known {
		return append(b, c.encoded()...)
	}
	before := len(b)
	b = e.value(b, a, r)
	if !e.missing {
		c.keep(a, r.name.id(), b[before:])
	}
	return b
}
