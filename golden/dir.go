package golden

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// RecordedTruth is what truth.json holds: the truth about a run, and what its
// recordings hold, if it was recorded.
type RecordedTruth struct {
	Truth
	Torch *TorchTruth `json:"torch,omitempty"`
	Nsys  *NsysTruth  `json:"nsys,omitempty"`
}

// WriteRecordedDir writes the run into a directory, which it creates if necessary:
// otel.jsonl and truth.json, and with a configuration of them PyTorch traces and
// Nsight Systems exports into the folders torch and nsys, about which truth.json
// then tells too. Files of these names are overwritten.
func WriteRecordedDir(dir string, r *Run, traces *TorchConfig, exports *NsysConfig) (err error) {
	truth := RecordedTruth{Truth: *r.Truth()}
	if traces != nil {
		if truth.Torch, err = WriteTorchDir(dir, r, *traces); err != nil {
			return err
		}
	}
	if exports != nil {
		if truth.Nsys, err = WriteNsysDir(dir, r, *exports); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("creating the output directory: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "otel.jsonl"), func(w io.Writer) error { return WriteOTLP(w, r) }); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "truth.json"), func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := json.NewEncoder(b).Encode(truth); err != nil {
			return err
		}
		return b.Flush()
	})
}

// writeFile creates a file and reports the first error, that of closing included.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
