package chrometrace

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// errNoTrace says that an input is something else.
var errNoTrace = errors.New("no Chrome trace: there is no traceEvents, nor an event")

// Read reads a trace from the decompressed input r; name is for messages.
//
// Damage becomes diagnostics, and everything readable is kept; so is what was
// read before r failed. The error says that nothing could be used.
func Read(name string, r io.Reader, opt Options) (*profile.Profile, error) {
	return read(name, r, opt, usual)
}

func read(name string, r io.Reader, opt Options, l limits) (*profile.Profile, error) {
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	set := newSettings(opt, l)
	src := &source{r: r}
	work := make(chan *piece, opt.Workers)
	order := make(chan *piece, opt.Workers)
	c := newCollector(name, set)
	cut := cutter{in: src, blocks: &blocks{size: l.block}, work: work, order: order}
	if set.timed {
		c.state.clock = opt.Base
		clock := make(chan int64, 1)
		cut.clock, c.clock = clock, clock
	}
	start := c.state
	go func() {
		cut.run(start)
		close(work)
		close(order)
	}()
	for range opt.Workers {
		go func() {
			p := newParser(set)
			appender := opt.Args.Appender()
			for piece := range work {
				if !piece.last || piece.offset > 0 { // a small file needs no block of its own
					p.args = appender
				}
				p.parse(piece)
			}
		}()
	}
	for p := range order {
		c.collect(p, <-p.done)
		cut.blocks.put(p.data)
	}
	if !c.chrome {
		if src.failed() {
			return nil, fmt.Errorf("reading %s: %w", name, src.err)
		}
		return nil, fmt.Errorf("reading %s: %w", name, errNoTrace)
	}
	f := c.finish()
	if src.failed() {
		opt.Diags.Add(trace.Diag{Severity: trace.DataLoss, Code: "trace-truncated", Pos: trace.Pos{File: name, Offset: src.n},
			Msg: fmt.Sprintf("reading stopped here: %v; everything before is used", src.err)})
	}
	return f, nil
}

// parse reads a piece, if its beginning is not known to be none.
func (p *parser) parse(piece *piece) {
	var r result
	if piece.guess {
		p.failed = piece.failed
		r.used, r.end, r.again = p.run(piece.data, piece.offset, piece.last, piece.begin)
		r.batch = p.out.take()
	}
	piece.done <- r
}
