package platform

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// smiHead is in the output of "nvidia-smi -q": indented sections for each GPU.
var smiHead = []byte("NVSMI LOG==")

// A smiQuery reads the output of "nvidia-smi -q": faults of GPUs at one moment.
type smiQuery struct {
	*series.Filler
	server   int32
	at       trace.Time
	gpu      string   // bus of the current GPU
	sections []string // of the current line, by indentation
}

// line parses "        HW Slowdown                       : Not Active".
func (q *smiQuery) line(b []byte, n int64) {
	text := strings.TrimRight(string(b[:min(len(b), 200)]), " \r")
	bare := strings.TrimLeft(text, " ")
	depth := (len(text) - len(bare)) / 4
	if bus, ok := strings.CutPrefix(text, "GPU "); ok && strings.Count(bus, ":") >= 2 {
		if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) == 8 { // the kernel writes four digits
			bus = strings.TrimPrefix(domain, "0000") + ":" + rest
		}
		q.gpu, q.sections = strings.TrimSuffix(bus, ".0"), nil
		return
	}
	key, value, pair := strings.Cut(bare, " : ")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	q.sections = append(q.sections[:min(depth, len(q.sections))], key)
	switch {
	case !pair || value == "":
	case q.gpu == "" && key == "Timestamp":
		if at, err := time.Parse("Mon Jan _2 15:04:05 2006", value); err == nil {
			q.at = trace.Time(at.UnixNano())
			q.Saw(q.at)
		}
	case q.gpu != "":
		if says := q.fault(key, value); says != "" {
			place := q.Place(series.Place{Server: q.server, Rank: trace.NoRank, GPU: series.NoGPU})
			q.Instant(series.Instant{Time: q.at, Kind: series.Hardware, Place: place, Line: uint32(n), Count: 1}, says)
		}
	}
}

// fault returns the fault of a GPU that a value shows; "" if there is none.
func (q *smiQuery) fault(key, value string) string {
	in := strings.Join(q.sections, "/")
	switch {
	case strings.Contains(in, "Reasons/") && !strings.Contains(in, "Counters") && value == "Active" && strings.Contains(key, "Slowdown"):
		return fmt.Sprintf("the clocks of GPU %s are lowered: %s", q.gpu, key)
	case strings.Contains(in, "Remapped Rows/") && key == "Pending" && value == "Yes":
		return fmt.Sprintf("memory of GPU %s has rows to remap: reset it", q.gpu)
	case strings.Contains(in, "Remapped Rows/") && key == "Remapping Failure Occurred" && value == "Yes":
		return fmt.Sprintf("memory of GPU %s has rows that could not be remapped", q.gpu)
	case key == "GPU Recovery Action" && value != "None" && value != "N/A":
		return fmt.Sprintf("the driver asks of GPU %s: %s", q.gpu, value)
	case strings.Contains(in, "Volatile/") && strings.Contains(key, "Uncorrectable"):
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return fmt.Sprintf("memory of GPU %s has %d uncorrectable errors since the driver was loaded: %s", q.gpu, n, key)
		}
	}
	return ""
}
