package walk

import (
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// NamesWith tells names that hold a text, each looked at once.
type NamesWith struct {
	Syms  *trace.Symbols
	Text  string
	known Paged[nameHas] // by symbol
}

type nameHas uint8

const (
	nameUnknown nameHas = iota
	nameHasNot
	nameHasIt
)

// GraphLaunches tells calls that launch CUDA graphs: cudaGraphLaunch, cuGraphLaunch,
// hipGraphLaunch.
func GraphLaunches(syms *trace.Symbols) NamesWith {
	return NamesWith{Syms: syms, Text: "GraphLaunch"}
}

// Has reports whether a name holds the text.
func (n *NamesWith) Has(name trace.Sym) bool {
	known := n.known.At(int64(name))
	if *known == nameUnknown {
		*known = nameHasNot
		if strings.Contains(n.Syms.Name(name), n.Text) {
			*known = nameHasIt
		}
	}
	return *known == nameHasIt
}
