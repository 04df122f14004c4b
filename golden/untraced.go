package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Untraced returns the names of the incidents that [WriteUntraced] can write.
func Untraced() (names []string) {
	for i := range cluster.Evident {
		names = append(names, cluster.Evident[i].Name)
	}
	return names
}

// WriteUntraced writes what an incident leaves behind if nobody traced it: logs of servers and kernels, metrics, and, for some seeds,
// records of requests, each in the layout that the seed selects. truth.json says what was planted. It creates the directory if
// necessary, and overwrites files with these names.
func WriteUntraced(dir, incident string, seed uint64) error {
	s := cluster.Find(incident)
	if s == nil {
		return fmt.Errorf("no incident %q", incident)
	}
	run, err := cluster.Play(s.Config(seed))
	if err != nil {
		return err
	}
	truth, err := s.Truth(run)
	if err != nil {
		return err
	}
	e := cluster.EvidenceOf(seed)
	files, err := e.Files(run)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("creating the output directory: %w", err)
		}
		if err := os.WriteFile(path, f.Text, 0o666); err != nil {
			return err
		}
	}
	return simulator.WriteFile(filepath.Join(dir, "truth.json"), func(w io.Writer) error { return json.NewEncoder(w).Encode(truth) })
}
