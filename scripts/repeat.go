package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// maxRepeats is how many times a dump can be repeated: a digit of its IDs tells the repeats apart.
const maxRepeats = 16

// apart is from the beginning of a repeat to that of the next; a dump must be shorter.
const apart = 6 * time.Hour

// ids are the texts before IDs that must differ between repeats.
var ids = []string{`"traceId":"`, `"key":"rid","value":{"stringValue":"`, `"key":"bootstrap_room","value":{"stringValue":"0x`}

// repeat writes a dump of JSON lines n times, with other requests each time, and later.
func repeat(w io.Writer, dump string, n int) error {
	if n > maxRepeats {
		return fmt.Errorf("%s can be repeated %d times at most", dump, maxRepeats)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	for k := range n {
		if err := shifted(out, dump, k); err != nil {
			return err
		}
	}
	return out.Flush()
}

// shifted writes repeat k.
func shifted(out *bufio.Writer, dump string, k int) error {
	f, err := os.Open(dump)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<28)
	for lines.Scan() {
		line := lines.Bytes()
		for _, id := range ids {
			for at := range values(line, id) {
				at[0] = "0123456789abcdef"[k]
			}
		}
		for at := range values(line, `UnixNano":"`) {
			const digits = len("1787000000000000000")
			ns, err := strconv.ParseInt(string(at[:digits]), 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", dump, err)
			}
			strconv.AppendInt(at[:0], ns+int64(k)*int64(apart), 10)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return lines.Err()
}

// values yields what follows each marker of a line, to be changed in place.
func values(line []byte, marker string) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			at := bytes.Index(line, []byte(marker))
			if at < 0 {
				return
			}
			line = line[at+len(marker):]
			if !yield(line) {
				return
			}
		}
	}
}
