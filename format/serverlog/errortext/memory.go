package errortext

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// OutOfMemory reads that a device ran out of memory, with PyTorch's details. It ignores what only might happen: vLLM tells
// everybody what to do "If you are running out of memory".
func OutOfMemory(b []byte) string {
	before := b[:max(0, bytes.Index(b, []byte("out of memory")))]
	if before = before[bytes.LastIndex(before, []byte(". "))+1:]; supposed.In(before) != 0 {
		return ""
	}
	text := "the device ran out of memory"
	if i := bytes.Index(b, []byte("ried to allocate ")); i >= 0 {
		if n, ok := logline.After(b[i:], "ried to allocate "); ok {
			unit := "MiB"
			if bytes.Contains(b[i:min(len(b), i+40)], []byte("GiB")) {
				unit = "GiB"
			}
			text += fmt.Sprintf(": it tried to allocate %g %s", n, unit)
		}
	}
	var parts []string
	for _, part := range memoryParts {
		if m := part.of.FindSubmatch(b); m != nil {
			parts = append(parts, string(m[1])+part.is)
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// supposed are words of a sentence about something that has not happened.
var supposed = logline.NewWordSet("If ", " if ", " may ", " might ", " could ", "avoid", "prevent", "in case")

// memoryParts are PyTorch's details about a device without memory. Until 2023, it put these numbers between semicolons:
// "(GPU 0; 79.15 GiB total capacity; 70.13 GiB already allocated; 1.25 GiB free; ...)".
var memoryParts = []struct {
	of *lazyregexp.Regexp
	is string
}{
	{lazyregexp.New(`(?:of which |; )([\d.]+ [KMG]?i?B)(?:ytes)?(?: is)? free`), " free"},
	{lazyregexp.New(`(?:; |memory )([\d.]+ [KMG]?i?B)(?:ytes)?(?: is| already) allocated(?: by PyTorch)?`), " used by PyTorch"},
	{lazyregexp.New(`([\d.]+ [KMG]?i?B)(?:ytes)? is reserved by PyTorch but unallocated`), " reserved and unused"},
}
