package screen

import (
	"fmt"
	"strings"
	"time"
)

// line is the text to show when the work has taken the given time. The file comes last,
// since the end is cut off when the terminal is narrow.
func (m *Meter) line(elapsed time.Duration) string {
	if m.work.Doing != "" {
		return fmt.Sprintf("%s, %v", m.work.Doing, elapsed.Truncate(time.Second))
	}
	read := m.read.Load()
	rate := float64(read) / elapsed.Seconds()
	var b strings.Builder
	b.WriteString(size(float64(read)))
	if m.work.Bytes > 0 {
		// Files that grow while they are read do not go beyond 100%.
		fmt.Fprintf(&b, " of %s (%d%%)", size(float64(m.work.Bytes)), int(100*min(1, float64(read)/float64(m.work.Bytes))))
	}
	if elapsed >= pause { // the first moment has no rate
		fmt.Fprintf(&b, ", %s/s", size(rate))
		if left := float64(m.work.Bytes-read) / rate; left > 0 && left < longest.Seconds() {
			fmt.Fprintf(&b, ", %v left", time.Duration(left*float64(time.Second)).Round(time.Second))
		}
	}
	if name := m.file.Load(); name != nil {
		b.WriteString(": " + *name)
	}
	return b.String()
}

// longest is the time left that is worth telling; beyond, reading has stalled.
const longest = 100 * time.Hour

// size prints a number of bytes.
func size(n float64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%.0f B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.2f GB", n/1e9)
}
