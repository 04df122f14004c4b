package live

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// settle is how long the dump must be quiet before new spans are examined: the spans of a request arrive in
// several exports.
const settle = 300 * time.Millisecond

const format = "%-12s  %-32s  %9s %9s %9s %6s  %9s %9s  %9s %9s  %s\n"

// read sends the content of r in pieces until it ends, and then the error that it ended with.
func read(r io.Reader) (pieces chan []byte, ended chan error) {
	pieces, ended = make(chan []byte), make(chan error, 1)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 1<<20)
			n, err := r.Read(buf)
			if n > 0 {
				pieces <- buf[:n]
			}
			switch {
			case err == io.EOF:
				ended <- nil
				return
			case err != nil:
				ended <- err
				return
			}
		}
	}()
	return pieces, ended
}

// block is the maximum number of bytes held back while the dump is not quiet: it may already be large when
// reading starts.
const block = 16 << 20

// A Follower prints the requests of a growing dump.
type Follower struct {
	Out      io.Writer
	Selected *commandline.Selected // the requests to print
	Dump     *inputs.Growing
	Redact   func(*request.Set)

	fresh   bool            // the dump has lines that were not examined
	printed map[string]bool // by trace and request ID
}

// Follow prints the requests of a dump as they end, one per line, and returns the error that reading ended
// with.
func (f *Follower) Follow(r io.Reader) error {
	pieces, ended := read(r)
	if err := f.run(pieces); err != nil {
		return err
	}
	return <-ended
}

func (f *Follower) run(pieces <-chan []byte) error {
	f.printed = map[string]bool{}
	fmt.Fprintf(f.Out, format, "time", "rid", "queue", "prefill", "decode", "tokens", "itl p50", "itl p99", "ttft", "e2e", "status")
	var pending []byte
	quiet := time.NewTimer(settle)
	for {
		select {
		case p, ok := <-pieces:
			if !ok {
				return f.show(pending, true)
			}
			pending = append(pending, p...)
			if len(pending) >= block {
				end := bytes.LastIndexByte(pending, '\n') + 1
				if err := f.take(pending[:end]); err != nil {
					return err
				}
				pending = bytes.Clone(pending[end:])
			}
			quiet.Reset(settle)
		case <-quiet.C:
			began := time.Now()
			if err := f.show(pending, false); err != nil {
				return err
			}
			pending = nil
			// Requests are rebuilt from everything read so far, so examine less often as that takes longer.
			quiet.Reset(max(settle, 10*time.Since(began)))
		}
	}
}

// take adds new lines to the dump.
func (f *Follower) take(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	f.fresh = true
	return f.Dump.Read(lines)
}

// show adds new lines to the dump and prints the requests that have ended; at the end of the dump, also
// those that are incomplete.
func (f *Follower) show(lines []byte, last bool) error {
	if err := f.take(lines); err != nil {
		return err
	}
	if !f.fresh && !last {
		return nil
	}
	f.fresh = false
	set := f.Dump.Requests()
	if set == nil {
		return nil
	}
	begin, end, _ := set.Bounds()
	if err := f.Selected.Resolve(begin, end); err != nil {
		return err
	}
	if err := set.Select(f.Selected.Selection); err != nil {
		return err
	}
	f.Redact(set)
	for i := range set.Requests {
		r := &set.Requests[i]
		key := set.TraceID(r) + set.Text(r.RID)
		if f.printed[key] || !last && !complete(set, r) {
			continue
		}
		f.printed[key] = true
		if err := f.line(set, r); err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether all of r seems to have arrived: exports of the ranks may arrive after that of
// the request span.
func complete(set *request.Set, r *request.Request) bool {
	if r.Flags&(request.MissingRoot|request.Unjoined|request.MissingThread) != 0 {
		return false
	}
	for _, p := range set.PartsOf(r) {
		if part := &set.Parts[p]; len(set.ThreadsOf(part)) > 0 && set.Lead(part) == request.None && r.Status == request.Finished {
			return false
		}
	}
	return true
}

func (f *Follower) line(set *request.Set, r *request.Request) error {
	m := &r.Metrics
	dur := func(ns int64) string {
		if ns == request.Unknown {
			return "-"
		}
		return trace.FormatDuration(ns)
	}
	tokens := "-"
	if m.CompletionTokens != request.Unknown {
		tokens = fmt.Sprint(m.CompletionTokens)
	}
	at := words.At(r.Start, words.ClockLayout)
	_, err := fmt.Fprintf(f.Out, format, at, words.Clean(set.Text(r.RID)), dur(m.Queue), dur(m.Prefill), dur(m.Decode), tokens,
		dur(m.ITL.P50), dur(m.ITL.P99), dur(m.TTFT), dur(m.E2E), r.Status)
	return err
}
