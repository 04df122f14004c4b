package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostParts is how many of the outputs of a command are looked into.
const mostParts = 4

// explain says how two results differ, of which the outputs lie in base and new below dir.
func explain(before, after result, dir string) string {
	var b strings.Builder
	if before.Status != after.Status {
		fmt.Fprintf(&b, "  exit status was %d, is %d\n", before.Status, after.Status)
	}
	old, present := byName(before), byName(after)
	parts := 0
	for _, f := range before.Files {
		now, ok := present[f.Name]
		switch {
		case !ok:
			fmt.Fprintf(&b, "  %s is not written any more\n", f.Name)
		case now != f:
			if parts++; parts > mostParts {
				fmt.Fprintf(&b, "  %s differs\n", f.Name)
				continue
			}
			fmt.Fprintf(&b, "  %s", explainFile(f.Name, filepath.Join(dir, "base"), filepath.Join(dir, "new")))
		}
	}
	for _, f := range after.Files {
		if _, ok := old[f.Name]; !ok {
			fmt.Fprintf(&b, "  %s is new\n", f.Name)
		}
	}
	return b.String()
}

func byName(r result) map[string]file {
	files := map[string]file{}
	for _, f := range r.Files {
		files[f.Name] = f
	}
	return files
}

// explainFile says where the content of a file differs first.
func explainFile(name, base, changed string) string {
	path := name
	if name != stdoutName && name != stderrName {
		path = filepath.Join(filesName, name)
	}
	before, err := content(filepath.Join(base, path))
	if err != nil {
		return fmt.Sprintf("%s: %v\n", name, err)
	}
	after, err := content(filepath.Join(changed, path))
	if err != nil {
		return fmt.Sprintf("%s: %v\n", name, err)
	}
	at := firstDifference(before, after)
	return fmt.Sprintf("%s differs from byte %d, line %d, on:\n    - %s\n    + %s\n",
		name, at+1, bytes.Count(before[:at], []byte("\n"))+1, excerpt(before, at), excerpt(after, at))
}

// content reads a file, and decompresses what is compressed and can be.
func content(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return data, err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data, nil
	}
	if plain, err := io.ReadAll(r); err == nil {
		return plain, nil
	}
	return data, nil
}

// firstDifference returns where two contents begin to differ.
func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// aside is how much of a line is shown on either side of a difference, in bytes.
const aside = 60

// excerpt shows the line around a place, or what of it is near. What does not print is quoted.
func excerpt(data []byte, at int) string {
	if at >= len(data) && (at == 0 || data[at-1] == '\n') {
		return "(end)"
	}
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	end := len(data)
	if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
		end = at + n
	}
	text := string(data[max(begin, at-aside):min(end, at+aside)])
	printable := utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	if !printable {
		text = fmt.Sprintf("%q", text)
	}
	if begin < at-aside {
		text = "..." + text
	}
	if end > at+aside {
		text += "..."
	}
	return text
}
