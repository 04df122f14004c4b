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
func WriteDir(dir string, r *Run) error { return writeDir(dir, r, nil) }

func writeDir(dir string, r *Run, torch *TorchTruth) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("creating the output directory: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "otel.jsonl"), r.WriteOTLP); err != nil {
		return err
	}
	truth := r.Truth()
	truth.Torch = torch
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
	torch, err := WriteTorchDir(dir, r, c)
	if err != nil {
		return err
	}
	return writeDir(dir, r, torch)
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
