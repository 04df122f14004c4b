package logline

import (
	"bytes"
	"slices"
)

// NewestFirst reports whether the stamps in the head of a log go back again and again, and never forth, as a store of logs
// may show it.
func NewestFirst(head []byte) bool {
	const few = 3
	var last []byte
	back := 0
	for line := range bytes.Lines(head) {
		at := monthToSecond(line)
		if at == nil {
			continue
		}
		switch c := bytes.Compare(at, last); {
		case last == nil, c == 0:
		case c > 0:
			return false
		default:
			back++
		}
		last = at
	}
	return back >= few
}

// monthToSecond returns the month, day, and time of the first stamp near the beginning of a line, which sort as text; nil
// if there is none.
func monthToSecond(line []byte) []byte {
	const looked, length = 120, len("01-02 15:04:05")
	line = line[:min(len(line), looked)]
	for i := 0; i+length <= len(line); i++ {
		if at := line[i : i+length]; at[2] == '-' && at[8] == ':' && at[11] == ':' && (at[5] == ' ' || at[5] == 'T') {
			month, ok := Digits(at, 2)
			_, days := Digits(at[3:], 2)
			if _, clock := ClockOf(at[6:]); ok && days && clock && month >= 1 && month <= 12 {
				return append(slices.Clone(at[:5]), at[6:]...)
			}
		}
	}
	return nil
}

// OldestFirst returns the lines of a log that has the newest first from the oldest on, with their numbers. If a traceback goes
// on in the line after its beginning, the store kept records of several lines, and those without a stamp stay behind theirs.
func OldestFirst(text []byte) (lines [][]byte, numbers []int64) {
	lines = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	records := false
	for i := range lines[1:] {
		records = records || bytes.Contains(lines[i], []byte("Traceback (most recent call last):")) && bytes.HasPrefix(bytes.TrimLeft(lines[i+1], " "), []byte(`File "`))
	}
	for i := range lines {
		numbers = append(numbers, int64(i+1))
	}
	slices.Reverse(lines)
	slices.Reverse(numbers)
	if !records {
		return lines, numbers
	}
	from := 0
	for i := range lines {
		if monthToSecond(lines[i]) != nil { // the first line of its record, which is the last one of it here
			slices.Reverse(lines[from : i+1])
			slices.Reverse(numbers[from : i+1])
			from = i + 1
		}
	}
	return lines, numbers
}
