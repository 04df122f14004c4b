package logline

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// Longest is the number of bytes kept of a line: the rest of a longer one, with a prompt of a million tokens,
// is skipped.
const Longest = 16 << 20

// Read calls do for each line of a file, like [Lines], and closes the file. It reports lines that were too
// long, and those with binary data, of which do gets the text behind that.
func Read(in io.ReadCloser, name string, diags *trace.Diags, do func(line []byte, n int64)) (size int64, err error) {
	binary, first := 0, int64(0)
	size, long, err := Lines(in, func(line []byte, n int64) {
		if bytes.IndexByte(line, 0) >= 0 {
			if n == 1 { // a log that was emptied while its writer had it open begins with a hole, and nothing is lost
				line = bytes.TrimLeft(line, "\x00")
			}
			if isBinary(line) {
				if binary++; binary == 1 {
					first = n
				}
				line = line[bytes.LastIndexByte(line, 0)+1:]
			}
		}
		do(line, n)
	})
	if binary > 0 {
		diags.Add(trace.LogBinary.At(trace.Pos{File: name, Line: first, Offset: -1}, binary))
	}
	if long > 0 {
		diags.Add(trace.LogLineLong.Of(name, Longest>>20).Times(long))
	}
	return size, cmp.Or(err, in.Close())
}

// isBinary reports whether a line has a hole, as a file has where a machine lost power or a disk an extent, or other binary data. A single
// zero in a prompt is neither.
func isBinary(line []byte) bool {
	const hole = "\x00\x00\x00\x00\x00\x00\x00\x00"
	return bytes.Contains(line, []byte(hole)) || bytes.IndexByte(line, 0) >= 0 && !utf8.Valid(line)
}

// Lines calls do for each line of a log, with its number from 1. It returns the number of bytes, and the number
// of lines longer than [Longest], which it omits. A line is valid until do returns.
func Lines(in io.Reader, do func(line []byte, n int64)) (size int64, long int, err error) {
	buf := make([]byte, 1<<20)
	from, to, skipping, line := 0, 0, false, int64(0)
	for {
		n, err := in.Read(buf[to:])
		size += int64(n)
		end := to + n
		for {
			i := bytes.IndexByte(buf[to:end], '\n')
			if i < 0 {
				to = end
				break
			}
			if line++; !skipping {
				do(buf[from:to+i], line)
			}
			skipping = false
			to += i + 1
			from = to
		}
		switch {
		case err != nil:
			if line++; from < to && !skipping {
				do(buf[from:to], line)
			}
			if err == io.EOF {
				err = nil
			}
			return size, long, err
		case from > 0:
			to = copy(buf, buf[from:to])
			from = 0
		case to == len(buf) && len(buf) < Longest:
			buf = append(buf, make([]byte, len(buf))...)
		case to == len(buf):
			if !skipping {
				long++
			}
			from, to, skipping = 0, 0, true
		}
	}
}

// DynamoFrontend is an expression for the modules of Dynamo's frontend: the other modules run in workers.
const DynamoFrontend = `dynamo_llm::(?:http|migration|discovery|kv_router::(?:indexer|scheduler))`

// DynamoWorker returns our name for a Dynamo worker that answered a request, from the numbers of the workers
// that prefilled and decoded it; "" if there are none. Its logs do not name it.
func DynamoWorker(prefill, decode string) string {
	switch {
	case decode == prefill && decode != "":
		return "worker-" + decode
	case decode != "":
		return "decode-" + decode
	case prefill != "":
		return "prefill-" + prefill
	}
	return ""
}

// Message returns the first line of a message, cut if it is long.
func Message(b []byte) string {
	const most = 160
	text := strings.ToValidUTF8(strings.TrimSpace(string(b[:min(len(b), most)])), "")
	if len(b) > most {
		text += "…"
	}
	return text
}

// Beginning returns the prefix of b that consists of letters, digits, and bytes in also, at most most bytes.
func Beginning(b []byte, also string, most int) string {
	end := bytes.IndexFunc(b, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(also, r)
	})
	if end < 0 {
		end = len(b)
	}
	return string(b[:min(end, most)])
}

// Word returns the letters at the beginning of b.
func Word(b []byte) string {
	end := 0
	for end < len(b) && (b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z' || b[end] == '_' || b[end] == '.' && end > 0) {
		end++
	}
	return strings.TrimRight(string(b[:min(end, 80)]), ".")
}
