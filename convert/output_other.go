//go:build !linux

package convert

import (
	"errors"
	"os"
)

// openNameless returns nil: files without a name are Linux's.
func openNameless(string) *os.File { return nil }

func linkNameless(*os.File, string) error { return errors.ErrUnsupported }
