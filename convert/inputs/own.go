package inputs

import (
	"bytes"
	"regexp"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/perfetto"
)

// own lists what sgtrace writes, and how to know it by the beginning of the file: it puts
// a mark into everything, since names are up to the user.
var own = []struct {
	reason reason
	is     func(head []byte) bool
}{
	{ownFile("timeline"), perfetto.IsOwn},
	{ownFile("timeline"), chrometrace.IsOwn},
	{ownFile("page"), func(head []byte) bool {
		return bytes.Contains(head, []byte(`<meta name="generator" content="sgtrace">`))
	}},
	{ownFile("JSON file"), regexp.MustCompile(`^\s*\[?\s*\{\s*"schema"\s*:\s*"sgtrace\.`).Match},
}

// ownOf returns what to say of a file with this head if sgtrace wrote it, nil if not.
func ownOf(head []byte) *reason {
	for i := range own {
		if own[i].is(head) {
			return &own[i].reason
		}
	}
	return nil
}

// Replaceable reports whether an output may take the place of an input: a search led to
// it, and sgtrace wrote it, so that it is not read.
func (in Input) Replaceable() bool {
	if in.Search == nil {
		return false
	}
	s, err := in.open(nil, nil)
	if err != nil {
		return false
	}
	defer s.Close()
	return s.own != nil
}
