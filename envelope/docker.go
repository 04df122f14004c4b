package envelope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// isDocker reports whether head begins with a line of Docker's json-file log driver:
// {"log":"...\n","stream":"stdout","time":"..."}.
func isDocker(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(`{"log":"`))
}

// maxDockerLine bounds a line of the log. Docker writes at most 16 KiB of what a program
// says into one, and goes on in the next.
const maxDockerLine = 1 << 20

// docker reads what a program wrote of the lines that Docker made of it.
type docker struct {
	in   *bufio.Reader
	rest []byte // of the line that is being read
	err  error
}

func openDocker(in *bufio.Reader) (io.Reader, func(), error) {
	return &docker{in: in}, func() {}, nil
}

func (d *docker) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.rest, d.err = d.next()
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// next returns what the next line of the log holds. A line that is none of Docker's, or is
// damaged, goes to the format, which knows what to say; one that is cut off is the end.
func (d *docker) next() ([]byte, error) {
	var line []byte
	for {
		part, err := d.in.ReadSlice('\n')
		line = append(line, part...)
		if err == bufio.ErrBufferFull && len(line) < maxDockerLine {
			continue
		}
		if err != nil && len(line) == 0 {
			return nil, err
		}
		break
	}
	if !isDocker(line) {
		return line, nil
	}
	var entry struct{ Log string }
	switch err := json.Unmarshal(line, &entry); {
	case err == nil:
		return []byte(entry.Log), nil
	case line[len(line)-1] != '\n':
		return nil, io.ErrUnexpectedEOF
	}
	return line, nil
}
