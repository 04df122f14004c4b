package format

import (
	"io"

	"github.com/sgtrace/sgtrace/request/spantable"
)

// Spans returns the Index of a format that is nothing but spans, which read puts into the
// table of all. encoding is what diagnostics call the file.
func Spans(encoding string, read func(to *spantable.Filler, in io.Reader)) func(*Input, *Options) (*Source, error) {
	return func(in *Input, opt *Options) (*Source, error) {
		r, err := in.Open()
		if err != nil {
			return nil, err
		}
		read(opt.Spans.Fill(in.Name, encoding), r)
		return &Source{}, r.Close()
	}
}

// Prescan returns the Outline of a format that is nothing but spans, which read reads.
func Prescan(read func(to *spantable.Filler, in io.Reader)) func(*Input, *spantable.Outline) error {
	return func(in *Input, o *spantable.Outline) error {
		r, err := in.Open()
		if err != nil {
			return err
		}
		to, ended := o.Fill(in.Name)
		read(to, r)
		ended()
		return r.Close()
	}
}
