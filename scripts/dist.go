package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A platform is one that archives are made for.
type platform struct{ os, arch string }

var targets = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// release builds what is handed out: an archive for each platform, with the program, the manual
// page, completions, the docs, and a modulefile; packages for Linux; and the checksums of all. The same
// commit and version of Go give the same bytes, wherever it runs:
//
//	go run ./scripts dist [-o DIR] [-only OS/ARCH,...] [-nfpm MODULE@VERSION]
//
// Packages are made by nfpm, which 'go run' gets; without -nfpm there are none.
func release(args []string) error {
	flags := flag.NewFlagSet("dist", flag.ExitOnError)
	dir := flags.String("o", "dist", "write to this `DIR`")
	only := flags.String("only", "", "build only these platforms: `OS/ARCH,...`")
	nfpm := flags.String("nfpm", "", "make packages for Linux with this `MODULE@VERSION` of nfpm")
	flags.Parse(args)
	return dist(*dir, *only, *nfpm)
}

// dist writes all archives, packages if nfpm is given, and SHA256SUMS into dir.
func dist(dir, only, nfpm string) error {
	chosen := slices.Clone(targets)
	if only != "" {
		chosen = slices.DeleteFunc(chosen, func(p platform) bool { return !slices.Contains(strings.Split(only, ","), p.String()) })
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no platform %q; there are %v", only, targets)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "sgtrace-dist-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	version, changed, err := checkout()
	if err != nil {
		return err
	}
	shared, err := sharedFiles(work)
	if err != nil {
		return err
	}
	var made []string
	for _, p := range chosen {
		program, err := build(p, work)
		if err != nil {
			return err
		}
		a := archive{name: fmt.Sprintf("sgtrace-%s-%s-%s", version, p.os, p.arch), changed: changed}
		a.files = append([]file{program}, shared...)
		name, data, err := a.pack(p.os == "windows")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
		made = append(made, name)
		if nfpm != "" && p.os == "linux" {
			names, err := packages{nfpm, version, changed}.write(dir, filepath.Join(work, "root", p.arch), p.arch, a.files)
			if err != nil {
				return err
			}
			made = append(made, names...)
		}
	}
	return writeSums(dir, made)
}

// writeSums lists the files and their checksums in SHA256SUMS.
func writeSums(dir string, names []string) error {
	var sums strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		fmt.Printf("%s: %.1f MB\n", filepath.Join(dir, name), float64(len(data))/1e6)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o666)
}

// checkout returns the version of the checkout and the time of its commit, which all
// files in archives have.
func checkout() (version string, changed time.Time, err error) {
	if version, err = output("git", "describe", "--tags", "--always", "--dirty"); err != nil {
		return "", time.Time{}, err
	}
	text, err := output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return "", time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return version, time.Unix(seconds, 0).UTC(), err
}

// build compiles the program for a platform.
func build(p platform, work string) (file, error) {
	name := "sgtrace"
	if p.os == "windows" {
		name += ".exe"
	}
	path := filepath.Join(work, p.os, p.arch, name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, "./cmd/sgtrace")
	// What the environment says about processors would change the result.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return file{}, fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}
	data, err := os.ReadFile(path)
	return file{name: name, mode: 0o755, data: data}, err
}

// sharedFiles returns those that all archives have. The program itself writes some of
// them, as built for this machine.
func sharedFiles(work string) ([]file, error) {
	own, err := build(platform{runtime.GOOS, runtime.GOARCH}, work)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(work, runtime.GOOS, runtime.GOARCH, own.name)
	var files []file
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}
	for _, path := range append(docs, "docs/schema.json", "LICENSE", "README.md", "CHANGELOG.md", "packaging/sgtrace.lua") {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.Replace(path, "packaging/", "modulefiles/", 1)
		files = append(files, file{name: filepath.ToSlash(name), mode: 0o644, data: data})
	}
	written := map[string]string{
		"man/man1/sgtrace.1":       "help man",
		"completions/sgtrace.bash": "help completion bash",
		"completions/_sgtrace":     "help completion zsh",
		"completions/sgtrace.fish": "help completion fish",
		"LICENSES":                 "version --licenses",
	}
	commands, err := output(program, "__complete", "")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(commands) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		written["man/man1/sgtrace-"+name+".1"] = "help man " + name
	}
	for name, words := range written {
		data, err := exec.Command(program, strings.Fields(words)...).Output()
		if err != nil {
			return nil, fmt.Errorf("sgtrace %s: %w", words, err)
		}
		files = append(files, file{name: name, mode: 0o644, data: data})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// output returns what a command prints, without the end of the line.
func output(name string, args ...string) (string, error) {
	var errOut bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, errOut.String())
	}
	return strings.TrimSpace(string(out)), nil
}
