package chrometrace

import (
	"bytes"
	"regexp"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
)

// Sniff reports whether a file with the given (decompressed) head, of up to 64 KiB,
// is Chrome JSON.
func Sniff(head []byte) bool {
	if bytes.Contains(head, []byte(`"traceEvents"`)) {
		return true
	}
	// The events of a PyTorch trace may begin behind a long list of groups.
	if bytes.Contains(head, []byte(`"schemaVersion"`)) &&
		(bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"distributedInfo"`))) {
		return true
	}
	// A list of events, or a file whose beginning is missing.
	return parse.HasEvent(head)
}

// IsOwn reports whether package writer wrote the file with the given head.
func IsOwn(head []byte) bool { return ownHeader.Match(head) }

// ownHeader is how the list of events is preceded in what package writer writes, whoever
// formatted it since.
var ownHeader = regexp.MustCompile(`^\s*\{[^\[]*"metadata"\s*:\s*\{\s*"base_time_ns"\s*:`)
