package inputs

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/format/otlplogs"
	"github.com/sgtrace/sgtrace/format/platform"
	"github.com/sgtrace/sgtrace/trace"
)

// insides are the formats that occur only as parts of inputs.
var insides = map[string]*format.Format{"resourceLogs": otlplogs.Format, "resourceMetrics": platform.OTLPMetrics}

// indexParts reads the parts of an input that its own format does not read, and their parts in turn.
func indexParts(in *format.Input, of *format.Source, opt *format.Options) error {
	var errs []error
	var strange []string
	for _, p := range of.Parts {
		known, err := indexPart(in, &p, opt)
		if errs = append(errs, err); !known {
			strange = append(strange, strings.TrimPrefix(p.Name, in.Name+" "))
		}
	}
	if n := len(strange); n > 0 {
		const some = 3
		names := strings.Join(strange[:min(n, some)], ", ")
		if n > some {
			names += ", ..."
		}
		opt.Diags.Add(trace.PartsUnknown.Of(in.Name, n, len(of.Parts), names))
	}
	return errors.Join(errs...)
}

// indexPart reads a part, and reports whether its format is known.
func indexPart(in *format.Input, p *format.Part, opt *format.Options) (known bool, err error) {
	x := &format.Input{Name: p.Name, Path: in.Path, Found: in.Found, Open: p.Open}
	f := insides[p.Inside]
	if p.Inside == "" {
		x.Open = func() (io.ReadCloser, error) { return bare(p) }
		content, err := bare(p)
		if err != nil {
			return true, err
		}
		f = sniff(content.Head)
		content.Close()
	}
	if f == nil || !f.Series {
		return false, nil
	}
	source, err := f.Index(x, opt)
	if err != nil {
		return true, fmt.Errorf("%s: %w", p.Name, err)
	}
	err = indexParts(x, source, opt)
	if source.Close != nil {
		err = errors.Join(err, source.Close())
	}
	return true, err
}

// A bareContent is the content of a part without the wrapping that log stores add.
type bareContent struct {
	*envelope.Reader
	around io.Closer
}

func (b bareContent) Close() error {
	b.Reader.Close()
	return b.around.Close()
}

func bare(p *format.Part) (b bareContent, err error) {
	raw, err := p.Open()
	if err != nil {
		return b, err
	}
	r, err := envelope.Open(p.Name, raw)
	if err != nil {
		return b, errors.Join(err, raw.Close())
	}
	return bareContent{r, raw}, nil
}
