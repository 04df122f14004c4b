package chrometrace

import "github.com/sgtrace/sgtrace/chrometrace/internal/parse"

// Options say how a file is read.
type Options = parse.Options
