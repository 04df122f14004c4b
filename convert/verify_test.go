package convert

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// An output that fails verification gets no name, and an existing file with that name is kept.
func TestVerifiedOutputsAppearOnlyIfTheyAreEqual(t *testing.T) {
	model := readback.Model(bytes.Repeat([]byte("a model with some events in it"), 40))
	for _, name := range []string{"out.pftrace", "out.pftrace.gz", "out.json", "out.json.gz"} {
		t.Run(name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), name)
			o, err := CreateOutput(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			size, equal, err := o.WriteVerified(model)
			if err != nil || equal.Slices != len(model.Slices)-1 {
				t.Fatalf("%d bytes, %+v, %v", size, equal, err)
			}
			whole, err := os.ReadFile(name)
			if err != nil || int64(len(whole)) != size {
				t.Fatalf("%d bytes of %d, %v", len(whole), size, err)
			}
			if o, err = CreateOutput(name, nil); err != nil {
				t.Fatal(err)
			}
			write := o.write
			o.write = func(w io.Writer, t *trace.Trace) error {
				var file bytes.Buffer
				err := write(&file, t)
				damaged := file.Bytes()
				damaged[len(damaged)/2] ^= 1 << 4
				return errors.Join(err, second(w.Write(damaged)))
			}
			if _, _, err = o.WriteVerified(model); !errors.Is(err, errDiffers) {
				t.Errorf("a damaged file: %v", err)
			}
			o.Abandon()
			after, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(after, whole) {
				t.Errorf("the file that was there is another one, %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
				t.Errorf("%d files are left", len(entries))
			}
		})
	}
}

func second(_ int, err error) error { return err }
