// Package licenses has the licenses of all that the program is linked of, which whoever hands it
// out has to hand out, too.
package licenses

import _ "embed"

// Text are the licenses, each once, below the names and versions of the modules that have it. 'make
// docs' writes it.
//
//go:embed licenses.txt
var Text string
