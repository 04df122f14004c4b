package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are those whose programs have a dependency that others lack.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

// licenseNames begin the licenseNames of files with a license, or with what a license wants to be told.
var licenseNames = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}

// licenses prints the licenses of all that the program is linked of, for 'sgtrace version
// --licenses' and for packages.
func licenses([]string) error {
	folders := map[string]string{} // by module and version
	for _, p := range platforms {
		goos, arch, _ := strings.Cut(p, "/")
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/sgtrace")
		list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(out)) {
			if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				folders[module] = dir
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	folders["Go, its standard library"] = strings.TrimSpace(string(root))
	folders[" sgtrace"] = "." // in front of all others
	return writeLicenses(folders)
}

// writeLicenses prints each text once, below the modules that have it.
func writeLicenses(folders map[string]string) error {
	of := map[string][]string{} // modules, by text
	for module, dir := range folders {
		text, err := licensesIn(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
		of[text] = append(of[text], module)
	}
	var texts []string
	for text := range of {
		slices.Sort(of[text])
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return strings.Compare(of[a][0], of[b][0]) })
	for _, text := range texts {
		fmt.Printf("%s\n%s\n\n%s\n\n", strings.TrimSpace(strings.Join(of[text], "\n")), strings.Repeat("-", 80), text)
	}
	return nil
}

// licensesIn returns the texts of the license files in a folder.
func licensesIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !slices.ContainsFunc(licenseNames, func(n string) bool { return strings.HasPrefix(name, n) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		b.Write(bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		b.WriteString("\n\n")
	}
	if b.Len() == 0 {
		return "", errors.New("no license")
	}
	return strings.TrimSpace(b.String()), nil
}
