package testset

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Golden files and scripts are read in diffs, so no line has more than 200 characters: scripts and
// CompareGolden fold longer ones. Fuzz corpora are exempt, because nobody reads them.
func TestGoldenLinesAreShort(t *testing.T) {
	const most = 200
	files := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "fuzz" || d.Name() == ".git" || d.Name() == "bin" || d.Name() == "demo"):
			return filepath.SkipDir
		case d.IsDir() || !strings.Contains(path, "testdata") && !strings.Contains(path, filepath.Join("golden", "script")):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(data, 0) >= 0 { // not text
			return err
		}
		files++
		for n, line := range bytes.Split(data, []byte("\n")) {
			if length := utf8.RuneCount(line); length > most {
				t.Errorf("%s:%d has %d characters (go test -update folds it)", path, n+1, length)
				break
			}
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files read: %v", files, err)
	}
}
