package writer

import (
	"bytes"
	"encoding/json"
)

// BaseAttribute is the attribute that tells from when on the times of a file count, in ns
// since 1970.
const BaseAttribute = "base_time_ns"

// Attributes returns the attributes of the trace with the given head, and BaseAttribute;
// none if [Write] did not write it, or the head ends among them.
func Attributes(head []byte) map[string]string {
	line, _, ok := bytes.Cut(head, []byte("\n"))
	var header struct{ Metadata map[string]string }
	if !ok || json.Unmarshal(append(bytes.Clone(line), "]}"...), &header) != nil {
		return nil
	}
	return header.Metadata
}
