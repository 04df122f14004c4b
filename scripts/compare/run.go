package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// patience is how long a command may take.
const patience = 2 * time.Minute

// environment is all that commands have of one, but for the path and HOME.
var environment = []string{"TZ=UTC", "LC_ALL=C.UTF-8", "COLUMNS=100", "TMPDIR=tmp"}

// A Result is what a command did. Two are equal if nothing differs.
type result struct {
	Status int    `json:"status"`
	Files  []file `json:"files"` // stdout, stderr, then what was written, by name
}

// A File is one output of a command. Its name is the path below the folder of the run.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // SHA-256
}

func (r result) equal(other result) bool {
	return r.Status == other.Status && slices.Equal(r.Files, other.Files)
}

// Folders and files of a run.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
	filesName  = "files" // the folder in which the command runs
)

// execute runs a command of the shell in a fresh folder at dir, with a program as sgtrace.
func execute(ctx context.Context, program, line string, in inputs, dir string) (result, error) {
	files := filepath.Join(dir, filesName)
	// With a temporary folder of its own it shows which temporary files stay behind.
	if err := os.MkdirAll(filepath.Join(files, "tmp"), 0o777); err != nil {
		return result{}, err
	}
	for _, name := range inputNames {
		if err := os.Symlink(filepath.Join(in.dir, name), filepath.Join(files, name)); err != nil {
			return result{}, err
		}
	}
	status, err := shell(ctx, program, line, dir)
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", line, err)
	}
	r := result{Status: status}
	r.Files, err = digests(dir)
	return r, err
}

// shell runs the command and returns its exit status. Its outputs are files: nothing is a
// terminal.
func shell(ctx context.Context, program, line, dir string) (status int, err error) {
	stdout, err := os.Create(filepath.Join(dir, stdoutName))
	if err != nil {
		return 0, err
	}
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(dir, stderrName))
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = filepath.Join(dir, filesName)
	path := filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = append(slices.Clone(environment), "HOME="+dir, "PATH="+path)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return failed.ExitCode(), nil
	}
	return 0, err
}

// digests lists all files below the folder of a run. Folders end in a slash.
func digests(dir string) ([]file, error) {
	var list []file
	err := filepath.WalkDir(filepath.Join(dir, filesName), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Join(dir, filesName), path)
		if err != nil || name == "." || slices.Contains(inputNames, name) {
			return err
		}
		f := file{Name: filepath.ToSlash(name)}
		switch {
		case entry.IsDir():
			f.Name += "/"
		case entry.Type().IsRegular():
			f.Size, f.Sum, err = digest(path)
		default:
			f.Sum = entry.Type().String()
		}
		list = append(list, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	var outputs []file
	for _, name := range []string{stdoutName, stderrName} {
		f := file{Name: name}
		if f.Size, f.Sum, err = digest(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		outputs = append(outputs, f)
	}
	return append(outputs, list...), nil
}

func digest(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, fmt.Sprintf("%x", h.Sum(nil)), err
}
