package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// Truth is the content of truth.json: the truth about a run, and what its
// recordings hold, if it was recorded.
type Truth struct {
	simulator.Truth
	Torch *torch.Truth `json:"torch,omitempty"`
	Nsys  *nsys.Truth  `json:"nsys,omitempty"`
}

// WriteDir writes the run into a directory, which it creates if necessary:
// otel.jsonl and truth.json, and with a configuration of them PyTorch traces and
// Nsight Systems exports into the folders torch and nsys, about which truth.json
// then tells too. Files of these names are overwritten.
func WriteDir(dir string, r *simulator.Run, traces *torch.Config, exports *nsys.Config) (err error) {
	truth := Truth{Truth: *r.Truth()}
	if traces != nil {
		if truth.Torch, err = torch.WriteDir(dir, r, *traces); err != nil {
			return err
		}
	}
	if exports != nil {
		if truth.Nsys, err = nsys.WriteDir(dir, r, *exports); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("creating the output directory: %w", err)
	}
	if err := simulator.WriteFile(filepath.Join(dir, "otel.jsonl"), func(w io.Writer) error { return otlp.Write(w, r) }); err != nil {
		return err
	}
	return simulator.WriteFile(filepath.Join(dir, "truth.json"), func(w io.Writer) error { return json.NewEncoder(w).Encode(truth) })
}
