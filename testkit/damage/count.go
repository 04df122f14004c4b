package damage

import (
	"os"
	"strconv"
)

// Seeds is how many mutants a test makes: few, or as many as SGTRACE_MUTANTS says.
func Seeds(few uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SGTRACE_MUTANTS"), 10, 32); err == nil {
		return n
	}
	return few
}
