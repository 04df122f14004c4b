package parse

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say how a file is read.
type Options struct {
	Syms    *trace.Symbols
	Args    *trace.Args
	Diags   *trace.Diags
	Workers int // goroutines that parse; 0 is one for every core
	Filter  profile.Filter
	// Base is the base time of the file in ns, if it was read before; 0 is unknown.
	Base int64
	// KeepSecrets tells to keep arguments that may hold prompts or credentials.
	KeepSecrets bool
}
