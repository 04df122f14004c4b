package parse

import (
	"errors"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// What can be wrong with the structure of a file. It costs the event that is
// being read.
var (
	errShort    = jsonscan.ErrShort
	errSyntax   = errors.New("this is not JSON, and nothing that could be repaired")
	errRepeated = errors.New("a member is there twice, as if two events ran into each other")
	errInside   = errors.New("an event begins where none can be")
	errTooLong  = errors.New("this is longer than any real event")
	errDeep     = errors.New("this is nested too deeply")
)
