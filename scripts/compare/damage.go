package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/internal/damage"
)

// writeDamaged damages the files of a demo in every way, and writes the copies into dir:
// otel-00.jsonl, otel-01.jsonl, ...
func writeDamaged(dir, demo string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, form := range []struct {
		name, ext, pattern string
		subject            func(data, other []byte) damage.Subject
	}{
		{"otel", ".jsonl", "otel.jsonl", damagedText},
		{"otelzst", ".zst", "otel.jsonl", damagedFrames},
		{"torch", ".json", "torch/*.gz", damagedText},
		{"torchgz", ".json.gz", "torch/*.gz", damagedMembers},
		{"nsys", ".sqlite", "nsys/*.sqlite", damagedPages},
	} {
		names, err := filepath.Glob(filepath.Join(demo, form.pattern))
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("no %s in the demo", form.pattern)
		}
		data, err := content(names[0])
		if err != nil {
			return err
		}
		other, err := content(names[len(names)-1])
		if err != nil {
			return err
		}
		subject := form.subject(data, other)
		for i := range damage.Kinds() {
			name := fmt.Sprintf("%s-%02d%s", form.name, i, form.ext)
			if err := os.WriteFile(filepath.Join(dir, name), subject.Mutate(uint64(i)).Data, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

func damagedText(data, other []byte) damage.Subject {
	return damage.Subject{Data: data, Cuts: damage.Tokens(data), Other: other, OtherCuts: damage.Tokens(other)}
}

// damagedFrames and damagedMembers damage what is compressed.
func damagedFrames(data, other []byte) (s damage.Subject) {
	s.Data, s.Cuts = damage.Zstd(data, 5)
	s.Other, s.OtherCuts = damage.Zstd(other, 5)
	return s
}

func damagedMembers(data, other []byte) (s damage.Subject) {
	s.Data, s.Cuts = damage.Gzip(data, 5)
	s.Other, s.OtherCuts = damage.Gzip(other, 5)
	return s
}

func damagedPages(data, other []byte) damage.Subject {
	return damage.Subject{
		Data: data, Cuts: damage.Pages(data, damage.SQLitePage),
		Other: other, OtherCuts: damage.Pages(other, damage.SQLitePage),
	}
}
