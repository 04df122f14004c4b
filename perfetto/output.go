package perfetto

import "io"

// bufferSize is the amount of output that is written in one piece.
const bufferSize = 256 << 10

// output hands full buffers to a goroutine that writes them. Two buffers go
// round: one is filled while the other one is written.
type output struct {
	full    chan []byte
	written chan written
}

// written is a buffer that can be filled again, and the first error so far.
type written struct {
	buf []byte
	err error
}

// newOutput starts writing to w; buf is the first buffer to fill.
func newOutput(w io.Writer) (o *output, buf []byte) {
	const room = bufferSize + bufferSize/8 // the packet that fills a buffer ends past it
	o = &output{full: make(chan []byte, 1), written: make(chan written, 2)}
	o.written <- written{buf: make([]byte, 0, room)}
	go o.run(w)
	return o, make([]byte, 0, room)
}

func (o *output) run(w io.Writer) {
	var err error
	for buf := range o.full {
		if err == nil {
			_, err = w.Write(buf)
		}
		o.written <- written{buf[:0], err}
	}
	close(o.written)
}

// flush writes buf and returns the buffer to fill next. An error may be that of
// an earlier flush.
func (o *output) flush(buf []byte) ([]byte, error) {
	o.full <- buf
	next := <-o.written
	return next.buf, next.err
}

// close waits for all writes and returns the first error.
func (o *output) close() (err error) {
	close(o.full)
	for done := range o.written {
		err = done.err
	}
	return err
}
