package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// program is what both programs are called, as some print their name.
const program = "sgtrace"

// baseProgram returns the path of the base: that of -base-binary, or one that is built of the
// commit, once and for all later runs. It has the name of the program in a folder of its own.
func baseProgram(ctx context.Context, opt options, work string) (string, error) {
	if opt.baseBinary != "" {
		path, err := filepath.Abs(opt.baseBinary)
		if err != nil {
			return "", err
		}
		link := filepath.Join(work, "base", program)
		if err := os.MkdirAll(filepath.Dir(link), 0o777); err != nil {
			return "", err
		}
		return link, os.Symlink(path, link)
	}
	commit, err := output(ctx, "git", "rev-parse", "--verify", opt.base+"^{commit}")
	if err != nil {
		return "", err
	}
	goVersion, err := output(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	path := filepath.Join(opt.cache, fmt.Sprintf("%s-%s-%s-%s", commit, goVersion, runtime.GOOS, runtime.GOARCH), program)
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	source := filepath.Join(work, "source")
	if err := checkOut(ctx, commit, source); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	// Another run that looks for it is not to find half of it.
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := build(ctx, source, unfinished); err != nil {
		return "", err
	}
	return path, os.Rename(unfinished, path)
}

// checkOut writes the files of a commit into dir. It does not touch the repository.
func checkOut(ctx context.Context, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	archive := dir + ".tar"
	if _, err := output(ctx, "git", "archive", "--format=tar", "-o", archive, commit); err != nil {
		return err
	}
	_, err := output(ctx, "tar", "-xf", archive, "-C", dir)
	return err
}

// build compiles the program of a source tree. Neither the commit nor the place of the source
// gets into it: the same source gives the same program.
func build(ctx context.Context, source, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/sgtrace")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building in %s: %w\n%s", source, err, out)
	}
	return nil
}

// output runs a command and returns what it prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
