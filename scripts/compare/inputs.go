package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Inputs are the folders that every command sees in the folder in which it runs, so that
// all paths that are printed are the same:
//
//	in         the shared data
//	exports    Nsight Systems exports of the shared data that are compressed there
//	demo       what 'sgtrace demo' of the base writes
//	incidents  other simulated incidents
//	damaged    damaged copies of a small demo
//	made       small files that are odd, or that flags ask for
type inputs struct {
	dir    string // holds these folders
	shared bool   // in and exports have something in them
	print  string // tells these inputs from others
}

// inputNames are the folders.
var inputNames = []string{"in", "exports", "demo", "incidents", "damaged", "made"}

//go:embed made
var made embed.FS

// prepare makes the inputs in dir, anew.
func prepare(ctx context.Context, base, dir string) (inputs, error) {
	in := inputs{dir: dir}
	if err := os.RemoveAll(dir); err != nil {
		return in, err
	}
	if err := os.CopyFS(dir, made); err != nil {
		return in, err
	}
	if err := writeDemo(ctx, base, filepath.Join(dir, "demo")); err != nil {
		return in, err
	}
	if err := simulate(filepath.Join(dir, "incidents")); err != nil {
		return in, err
	}
	small := dir + "-small"
	defer os.RemoveAll(small)
	if err := writeDemo(ctx, base, small, "--requests", "24", "--seed", "5"); err != nil {
		return in, err
	}
	if err := writeDamaged(filepath.Join(dir, "damaged"), small); err != nil {
		return in, err
	}
	data, err := linkShared(dir)
	if err != nil {
		return in, err
	}
	in.shared = data != ""
	in.print, err = fingerprint(dir, data)
	return in, err
}

func writeDemo(ctx context.Context, program, dir string, flags ...string) error {
	if out, err := exec.CommandContext(ctx, program, append(append([]string{"demo"}, flags...), dir)...).CombinedOutput(); err != nil {
		return fmt.Errorf("sgtrace demo: %w\n%s", err, out)
	}
	return nil
}

// linkShared makes the folders in and exports, and returns where the shared data is. Without
// it they are empty.
func linkShared(dir string) (data string, err error) {
	exports := filepath.Join(dir, "exports")
	if err := os.Mkdir(exports, 0o777); err != nil {
		return "", err
	}
	if data, err = sharedData(); err != nil {
		return "", err
	}
	if data == "" {
		return "", os.Mkdir(filepath.Join(dir, "in"), 0o777)
	}
	if err := os.Symlink(data, filepath.Join(dir, "in")); err != nil {
		return "", err
	}
	return data, decompress(filepath.Join(data, "reality", "nsys", "*.zst"), exports)
}

// sharedData returns the absolute path of the shared data, or "" if there is none.
func sharedData() (string, error) {
	dir := os.Getenv("SGTRACE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "shared")
	}
	dir = filepath.Join(dir, "data")
	if _, err := os.Stat(dir); err != nil {
		return "", nil
	}
	return filepath.Abs(dir)
}

// decompress writes the content of all files that match into dir, without the .zst of their
// names.
func decompress(pattern, dir string) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := decompressFile(name, filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".zst"))); err != nil {
			return err
		}
	}
	return nil
}

func decompressFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	dec, err := zstd.NewReader(in)
	if err != nil {
		return err
	}
	defer dec.Close()
	data, err := io.ReadAll(dec)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, data, 0o666)
}

// fingerprint is the same as long as nothing below dir was changed, and no file of the shared
// data, which are not read for that.
func fingerprint(dir, shared string) (string, error) {
	h := sha256.New()
	err := eachFile(dir, func(name string, _ fs.FileInfo) error {
		_, sum, err := digest(filepath.Join(dir, name))
		fmt.Fprintln(h, name, sum)
		return err
	})
	if err == nil && shared != "" {
		err = eachFile(shared, func(name string, info fs.FileInfo) error {
			fmt.Fprintln(h, name, info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// eachFile calls do with the name below dir of every regular file.
func eachFile(dir string, do func(name string, info fs.FileInfo) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return do(name, info)
	})
}
