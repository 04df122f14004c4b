package main

import (
	"context"
	"crypto/sha256"
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
//	in       the shared data
//	exports  Nsight Systems exports of the shared data that are compressed there
//	demo     what 'sgtrace demo' of the base writes
//	made     small files that flags ask for
type inputs struct {
	dir    string // holds these folders
	shared bool   // in and exports have something in them
	print  string // tells these inputs from others
}

// inputNames are the folders.
var inputNames = []string{"in", "exports", "demo", "made"}

// prepare makes the inputs in dir.
func prepare(ctx context.Context, base, dir string) (inputs, error) {
	in := inputs{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "exports"), 0o777); err != nil {
		return in, err
	}
	if out, err := exec.CommandContext(ctx, base, "demo", filepath.Join(dir, "demo")).CombinedOutput(); err != nil {
		return in, fmt.Errorf("sgtrace demo: %w\n%s", err, out)
	}
	if err := makeFiles(filepath.Join(dir, "made")); err != nil {
		return in, err
	}
	data, err := sharedData()
	if err != nil {
		return in, err
	}
	if data == "" {
		return in, os.Mkdir(filepath.Join(dir, "in"), 0o777)
	}
	in.shared = true
	if err := os.Symlink(data, filepath.Join(dir, "in")); err != nil {
		return in, err
	}
	if err := decompress(filepath.Join(data, "reality", "nsys", "*.zst"), filepath.Join(dir, "exports")); err != nil {
		return in, err
	}
	in.print, err = fingerprint(data)
	return in, err
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

// madeFiles are small inputs of flags.
var madeFiles = map[string]string{
	"key":       "sixteen bytes and more: a key",
	"short.key": "short",
	"classes":   "communication nccl\nmemory (?i)memcpy\ncompute .\n",
	"bad.class": "communication (\n",
	"text.txt":  "not a trace\n",
	"empty":     "",
	"notes.md":  "# Notes\n",
	"utf8 name.jsonl": `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"=cmd|x"}}]},` +
		`"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"a\u001b[31mb|c",` +
		`"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000100000000",` +
		`"attributes":[{"key":"http.request.header.authorization","value":{"stringValue":"Bearer abcdefgh12345678"}},` +
		`{"key":"gen_ai.prompt.0.content","value":{"stringValue":"a prompt"}}]}]}]}]}` + "\n",
}

func makeFiles(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for name, text := range madeFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
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

// fingerprint is the same as long as no file below dir was changed.
func fingerprint(dir string) (string, error) {
	h := sha256.New()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
