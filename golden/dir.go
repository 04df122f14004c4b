package golden

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// WriteDir writes the run into a directory, which it creates if necessary:
// otel.jsonl and truth.json. Files of these names are overwritten.
func WriteDir(dir string, r *Run) error { return writeDir(dir, r, nil, nil) }

func writeDir(dir string, r *Run, torch *TorchTruth, nsys *NsysTruth) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("creating the output directory: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "otel.jsonl"), r.WriteOTLP); err != nil {
		return err
	}
	truth := r.Truth()
	truth.Torch, truth.Nsys = torch, nsys
	return writeFile(filepath.Join(dir, "truth.json"), func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := json.NewEncoder(b).Encode(truth); err != nil {
			return err
		}
		return b.Flush()
	})
}

// WriteProfiledDir does what [WriteDir] does, and writes PyTorch traces of the run
// into the folder torch, about which truth.json then tells too.
func WriteProfiledDir(dir string, r *Run, c TorchConfig) error {
	return WriteRecordedDir(dir, r, &c, nil)
}

// WriteRecordedDir does what [WriteDir] does, and writes PyTorch traces and Nsight
// Systems exports of the run into the folders torch and nsys, about which
// truth.json then tells too. What has no configuration is left out.
func WriteRecordedDir(dir string, r *Run, torch *TorchConfig, nsys *NsysConfig) (err error) {
	var traces *TorchTruth
	if torch != nil {
		if traces, err = WriteTorchDir(dir, r, *torch); err != nil {
			return err
		}
	}
	var exports *NsysTruth
	if nsys != nil {
		if exports, err = WriteNsysDir(dir, r, *nsys); err != nil {
			return err
		}
	}
	return writeDir(dir, r, traces, exports)
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
