package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A CopyKind is all copies or fills of one operation on a device, such as "Memcpy HtoD
// (Pageable -> Device)".
type CopyKind struct {
	Name  string
	N     int64
	Time  int64 // ns, sum of the durations
	Bytes int64 // of those of known size; see Sized
	Sized int64 // ns of the copies of known size
}

// Rate returns the bytes per second of the copies of known size, 0 if there are none.
func (c *CopyKind) Rate() float64 {
	if c.Sized == 0 {
		return 0
	}
	return float64(c.Bytes) / float64(c.Sized) * 1e9
}

func (c *CopyKind) add(o *CopyKind) {
	c.N += o.N
	c.Time = distribution.AddTimes(c.Time, o.Time)
	c.Bytes = distribution.AddTimes(c.Bytes, o.Bytes)
	c.Sized = distribution.AddTimes(c.Sized, o.Sized)
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

func (k copyKinds) add(c *profile.Copy) {
	one := CopyKind{N: 1, Time: c.Dur()}
	if c.Bytes >= 0 {
		one.Bytes, one.Sized = c.Bytes, one.Time
	}
	k.of(c.Name).add(&one)
}

func (k copyKinds) join(o copyKinds) {
	for name, c := range o {
		k.of(name).add(c)
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
	slices.SortFunc(list, func(a, b CopyKind) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
}
