package build

import _ "embed"

// Licenses are those of all that the program is linked of, which whoever hands it out has to
// hand out, too: each once, below the names and versions of the modules that have it. 'make
// docs' writes them.
//
//go:embed licenses.txt
var Licenses string
