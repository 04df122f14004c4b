package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/internal/secret"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/trace"
)

// ErrNoSpans says that none of the inputs could be used.
var ErrNoSpans = errors.New("no input has any spans")

// A Meter hears how far reading has come. It may be called from any goroutine.
type Meter interface {
	File(name string) // that is being read from now on
	Add(n int)        // bytes read, as they lie in the file
}

// newDump returns an empty Dump that reports to diags. Unless keepSecrets, attributes that
// may hold secrets are left out of it, and credentials are masked in all names that are
// interned in its table of symbols, by readers of any format.
func newDump(diags *trace.Diags, keepSecrets bool) *otlpjson.Dump {
	d := otlpjson.NewDump(diags)
	if d.KeepSecrets = keepSecrets; !keepSecrets {
		d.Syms.Rename(secret.Mask)
	}
	return d
}

// Load reads the named OTLP inputs and rebuilds their requests. An input that
// cannot be used is reported to diags and left out, and so is one of a profiler,
// which opt.Only makes an error; the error is for when none is left. Of opt, the
// filter and what is about ranks do not matter.
func Load(names []string, opt ReadOptions, diags *trace.Diags) (*request.Set, error) {
	d := newDump(diags, opt.KeepSecrets)
	var others []string
	for _, name := range names {
		switch err := read(d, name, opt.Stdin, opt.Meter); {
		case errors.Is(err, errElsewhere) && opt.Only == nil:
			others = append(others, name)
		case err != nil:
			diags.Add(trace.Diag{Severity: trace.Error, Code: "input-unusable", Pos: trace.Pos{File: name, Offset: -1}, Msg: err.Error()})
		}
	}
	if len(others) > 0 {
		diags.Add(trace.Diag{Severity: trace.Info, Code: "input-without-requests", Pos: trace.Pos{File: others[0], Offset: -1}, Count: len(others),
			Msg: "is of a profiler and has no requests; left out here"})
	}
	d.ReportOther()
	if d.Len() == 0 && len(others) > 0 {
		return nil, fmt.Errorf("%w; what profilers recorded is for 'sgtrace merge', and 'sgtrace report' with --by-rank, --kernels and others", ErrNoSpans)
	}
	if d.Len() == 0 {
		return nil, ErrNoSpans
	}
	a := assembly.Build(d)
	if opt.OneClock {
		a.Set.ReportTimes()
		a.OnOneClock()
	} else {
		a.BreakTies()
	}
	a.Release()
	return a.Set, nil
}

func read(d *otlpjson.Dump, name string, stdin io.Reader, meter Meter) error {
	s, err := Open(name, stdin, meter)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.unusable(); err != nil {
		return err
	}
	if s.Format != FormatOTLP {
		if s.zeros {
			return errZeros
		}
		return s.Format.elsewhere()
	}
	return d.Read(s.Name, s)
}

var errEmpty = errors.New("the file is empty")

// unusable tells why nothing can read s, if that is so.
func (s *Stream) unusable() error {
	switch {
	case s.Empty:
		return errEmpty
	case s.Format == nil:
		return s.unknown
	}
	return nil
}

// A Growing is a dump that is still being written.
type Growing struct {
	name  string
	diags *trace.Diags // about lines that cannot be used
	dump  *otlpjson.Dump
}

// NewGrowing returns an empty dump that reports lines that cannot be used to diags. The
// name is for messages.
func NewGrowing(name string, diags *trace.Diags) *Growing {
	return &Growing{name: name, diags: diags, dump: newDump(diags, false)}
}

// Read adds whole lines.
func (g *Growing) Read(lines []byte) error {
	g.dump.Diags = g.diags
	return g.dump.Read(g.name, bytes.NewReader(lines))
}

// Requests returns the requests of all that was read, nil without any spans. Nothing is
// reported: whatever is missing may still come.
func (g *Growing) Requests() *request.Set {
	if g.dump.Len() == 0 {
		return nil
	}
	g.dump.Diags = new(trace.Diags)
	return assembly.Build(g.dump).Set
}
