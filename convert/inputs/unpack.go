package inputs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Bounds of what a file is unpacked to on a disk: no more than maxExpansion times its size,
// which no export comes near, but smallExpansion in any case.
const (
	maxExpansion   = 200
	smallExpansion = 1 << 30
)

// unpack copies the content of the input to a temporary file, and returns its path. Of what
// is damaged everything before is used.
func (x *Source) unpack(diags *trace.Diags) (path string, err error) {
	content, err := x.open()
	if err != nil {
		return "", err
	}
	defer content.Close()
	f, remove, err := memory.TempFile("unpacked")
	if err != nil {
		return "", err
	}
	x.remove = remove
	most := int64(1<<63 - 1)
	if info, err := os.Stat(x.Input.Path()); err == nil && info.Mode().IsRegular() {
		most = max(info.Size()*maxExpansion, smallExpansion)
	}
	to := &bounded{w: f, left: most}
	_, err = io.Copy(to, content)
	if err != nil && to.err == nil && to.left < most {
		diags.Add(trace.InputDamaged.Of(x.name(), err))
		err = nil
	}
	err = errors.Join(err, f.Close())
	switch {
	case to.err == errBomb:
		return "", errBomb
	case err != nil:
		return "", fmt.Errorf("unpacking it to a temporary file: %w (TMPDIR says where these go)", err)
	}
	return f.Name(), nil
}

// errBomb is the error of a file that expands beyond measure.
var errBomb = fmt.Errorf("expands to more than %d times its size, which no export does", maxExpansion)

// bounded writes to w, but no more than left bytes.
type bounded struct {
	w    io.Writer
	left int64
	err  error // of w, or errBomb
}

func (b *bounded) Write(p []byte) (n int, err error) {
	if int64(len(p)) > b.left {
		b.err = errBomb
		return 0, b.err
	}
	n, b.err = b.w.Write(p)
	b.left -= int64(n)
	return n, b.err
}
