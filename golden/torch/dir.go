package torch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/sgtrace/sgtrace/golden/internal/ground"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// WriteDir writes the traces of all schedulers of a run into the folder torch
// of a directory, named as SGLang does, and returns what is in them.
func WriteDir(dir string, r *simulator.Run, c Config) (*Truth, error) {
	p, err := NewProfile(r, c)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "torch")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	truth := &Truth{
		FromNs: p.from, ToNs: p.to, EndJitterNs: int64(c.EndJitter / time.Nanosecond),
		Files: make([]FileTruth, len(p.Captures)),
	}
	for _, g := range p.groups {
		truth.Groups = append(truth.Groups, g.truth())
	}
	errs := make([]error, len(p.Captures))
	var all sync.WaitGroup
	running := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, capture := range p.Captures {
		all.Go(func() {
			running <- struct{}{}
			defer func() { <-running }()
			errs[i] = ground.WriteFile(filepath.Join(dir, capture.name()), func(w io.Writer) error {
				f, err := capture.compress(w)
				if err == nil {
					truth.Files[i] = *f
				}
				return err
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return truth, nil
}

// compress writes a trace, compressed if the configuration says so.
func (c *Capture) compress(w io.Writer) (*FileTruth, error) {
	if !c.config().Gzip {
		return c.write(w)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	f, err := c.write(z)
	if err != nil {
		return nil, err
	}
	return f, z.Close()
}
