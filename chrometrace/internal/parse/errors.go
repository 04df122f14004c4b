package parse

import (
	"errors"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// What can be wrong with the structure of a file. It costs the event that is
// being read.
var (
	errShort    = jsonscan.ErrShort
	errSyntax   = errors.New("this is not JSON and cannot be repaired")
	errRepeated = errors.New("a member occurs twice, as if two events ran together")
	errInside   = errors.New("an event begins where none can")
	errTooLong  = errors.New("this is longer than any real event")
	errDeep     = errors.New("this is nested too deeply")
)
