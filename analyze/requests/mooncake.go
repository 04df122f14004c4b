package requests

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// FormatMooncake is the format of Mooncake's traces, which simulators of serving read.
const FormatMooncake table.Format = "mooncake"

// A mooncakeLine is a request in a trace of Mooncake. The hashes of the blocks of its prompt are
// not in dumps, so that no simulator finds a common prefix.
type mooncakeLine struct {
	Timestamp int64   `json:"timestamp"` // ms after the first request
	Input     int64   `json:"input_length"`
	Output    int64   `json:"output_length"`
	Hashes    []int64 `json:"hash_ids"`
}

// WriteMooncake writes the requests whose lengths are known, by arrival. It returns how many were
// left out.
func WriteMooncake(w io.Writer, s *request.Set) (left int, err error) {
	arrivals := order.Sorted(len(s.Requests), func(a, b int) int { return cmp.Compare(s.Requests[a].Start, s.Requests[b].Start) })
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	for _, i := range arrivals {
		r := &s.Requests[i]
		if r.Metrics.PromptTokens < 0 || r.Metrics.CompletionTokens < 0 {
			left++
			continue
		}
		x := mooncakeLine{Timestamp: int64(r.Start-s.Requests[arrivals[0]].Start) / 1e6, Input: r.Metrics.PromptTokens, Output: r.Metrics.CompletionTokens, Hashes: []int64{}}
		if err := lines.Encode(&x); err != nil {
			return left, err
		}
	}
	return left, out.Flush()
}
