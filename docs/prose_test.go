package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// avoided are phrases that native speakers do not use, and British spellings, in lowercase, with
// replacements.
var avoided = []struct{ phrase, instead string }{
	{"those that cost most", "top findings by cost"},
	{"what is left", "name it: the rest, the files"},
	{"what is known", "name it: the facts, the evidence"},
	{"what is no ", "what is not a"},
	{"tell the same", "give the same report"},
	{"tells the same", "gives the same report"},
	{"tell nothing", "have no information"},
	{"tells nothing", "has no information"},
	{"for want of", "because there is no"},
	{"there is nothing to look at", "Not enough data: 12 requests, 30 needed"},
	{"with the chance that it is none", "with a p-value"},
	{"if all ranks were alike", "if all ranks were equally fast"},
	{"has most more of", "largest cause of extra time"},
	{"for room on the decode side", "for KV cache on decode"},
	{"what has no room", "spill the rest to disk"},
	{"what ends after this", "include events that end after"},
	{"and drawn with it", "duplicates ...; merged"},
	{"behaviour", "behavior"},
	{"cancelled", "canceled"},
	{"centre", "center"},
	{"colour", "color"},
	{"favour", "favor"},
	{"honour", "honor"},
	{"labelled", "labeled"},
	{"neighbour", "neighbor"},
	{"normalis", "normaliz"},
	{"optimis", "optimiz"},
	{"organis", "organiz"},
	{"recognis", "recogniz"},
	{"summaris", "summariz"},
}

// Everything that people read is American English: code with its comments, pages, golden files, and
// scripts.
func TestProse(t *testing.T) {
	texts := []string{".go", ".md", ".tmpl", ".txtar", ".sh", ".js", ".css", ".html"}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "demo"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || d.Name() == "prose_test.go" || !slices.Contains(texts, filepath.Ext(path)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil {
			names := strings.NewReplacer("was_cancelled", "", "cancellederror", "", " cancelled at ", "") // names in AIPerf, Python, and Slurm
			checkProse(t, path, names.Replace(strings.ToLower(string(content))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkProse reports every avoided phrase in a text.
func checkProse(t *testing.T, path, text string) {
	t.Helper()
	for _, a := range avoided {
		for from := 0; ; {
			at := strings.Index(text[from:], a.phrase)
			if at < 0 {
				break
			}
			from += at + len(a.phrase)
			t.Errorf("%s:%d: %q: write %q", path, 1+strings.Count(text[:from], "\n"), a.phrase, a.instead)
		}
	}
}
