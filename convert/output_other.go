//go:build !linux

package convert

import (
	"errors"
	"os"
)

// openNameless returns nil: only Linux has files without a name.
func openNameless(string) *os.File { return nil }

func linkNameless(*os.File, string) error { return errors.ErrUnsupported }
