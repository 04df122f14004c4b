package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A step changes the file, and states what the follower then reads.
type step struct {
	do   func(t *testing.T, path string)
	want string
}

func appendTo(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { write(t, path, os.O_CREATE|os.O_APPEND, text) }
}

func truncate(t *testing.T, path string) { check(t, os.Truncate(path, 0)) }
func remove(t *testing.T, path string)   { check(t, os.Remove(path)) }
func rotate(t *testing.T, path string)   { check(t, os.Rename(path, path+".1")) }
func rotateBack(t *testing.T, path string) {
	check(t, os.Rename(path+".1", path))
}

// appendToOld writes like a writer that has not yet switched to the new file.
func appendToOld(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { write(t, path+".1", os.O_APPEND, text) }
}

func all(do ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		for _, f := range do {
			f(t, path)
		}
	}
}

func write(t *testing.T, path string, flag int, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o600)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	check(t, f.Close())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 3*minRead)
	for _, c := range []struct {
		name  string
		start string // content before the file is opened
		steps []step
		rest  string // read after the context ends
		moves bool   // moves an open file, which Windows forbids
	}{
		{name: "what is there already", start: "a\nb\n", steps: []step{{nil, "a\nb\n"}}},
		{name: "append", steps: []step{{appendTo("a\n"), "a\n"}, {nil, ""}, {appendTo("b\nc\n"), "b\nc\n"}}},
		{name: "half lines", start: "a\nb", steps: []step{
			{nil, "a\n"}, {appendTo("b"), ""}, {appendTo("b\nc"), "bbb\n"}, {appendTo("\n"), "c\n"},
		}},
		{name: "half line at the end", start: "a\nb", steps: []step{{nil, "a\n"}}, rest: "b"},
		{name: "line longer than the buffer", start: long, steps: []step{
			{nil, ""}, {appendTo(long + "\n" + long), long + long + "\n"},
		}, rest: long},
		{name: "truncate", start: "long line\n", steps: []step{
			{nil, "long line\n"}, {truncate, ""}, {appendTo("b\n"), "b\n"},
		}},
		{name: "truncate and write within an interval", start: "long line\n", steps: []step{
			{nil, "long line\n"}, {all(truncate, appendTo("b\n")), "b\n"},
		}},
		{name: "truncate amid a line", start: "a\nhal", steps: []step{
			{nil, "a\n"}, {all(truncate, appendTo("b\n")), "hal\nb\n"},
		}},
		{name: "rename and recreate", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {all(rotate, appendTo("b\n")), "b\n"}, {appendTo("c\n"), "c\n"},
		}},
		{name: "rename and recreate twice", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {all(rotate, appendTo("b\n")), "b\n"}, {all(rotate, appendTo("c\n")), "c\n"},
		}},
		{name: "remove and recreate", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {all(remove, appendTo("b\n")), "b\n"},
		}},
		{name: "recreate later", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {rotate, ""}, {appendToOld("b\n"), "b\n"}, {appendTo("c\n"), "c\n"},
		}},
		{name: "old file is finished first", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {all(rotate, appendTo("c\n"), appendToOld("b\n")), "b\nc\n"},
		}},
		{name: "rename amid a line", start: "a\nhal", moves: true, steps: []step{
			{nil, "a\n"}, {all(rotate, appendTo("b\n")), "hal\nb\n"},
		}},
		{name: "half line is completed after the rename", start: "a\nhal", moves: true, steps: []step{
			{nil, "a\n"}, {all(rotate, appendToOld("f\n"), appendTo("b\n")), "half\nb\n"},
		}},
		{name: "rename and rename back", start: "a\n", moves: true, steps: []step{
			{nil, "a\n"}, {rotate, ""}, {rotateBack, ""}, {appendTo("b\n"), "b\n"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.moves && runtime.GOOS == "windows" {
				t.Skip("Windows does not move or remove a file that is open")
			}
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "run.jsonl")
				write(t, path, os.O_CREATE, c.start)
				f := start(t, path, 0)
				for i, s := range c.steps {
					if s.do != nil {
						s.do(t, path)
					}
					time.Sleep(4 * DefaultInterval)
					synctest.Wait()
					if got := f.take(); got != s.want {
						t.Fatalf("step %d: got %s, want %s", i, brief(got), brief(s.want))
					}
				}
				f.cancel()
				if err := <-f.err; err != nil {
					t.Fatal(err)
				}
				if got := f.take(); got != c.rest {
					t.Errorf("at the end: got %s, want %s", brief(got), brief(c.rest))
				}
			})
		})
	}
}

// A follower reads a file in the background.
type follower struct {
	cancel context.CancelFunc
	err    chan error // error that ended reading; nil for io.EOF

	mu  sync.Mutex
	got bytes.Buffer
}

func start(t *testing.T, path string, interval time.Duration) *follower {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := OpenGrowing(ctx, path, interval)
	check(t, err)
	f := &follower{cancel: cancel, err: make(chan error, 1)}
	go func() {
		_, err := io.Copy(f, r)
		r.Close()
		f.err <- err
	}()
	return f
}

func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.Write(p)
}

// take returns what was read since its last call.
func (f *follower) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.got.Reset()
	return f.got.String()
}

func brief(s string) string {
	if len(s) > 100 {
		s = s[:50] + "..." + s[len(s)-50:]
	}
	return "\"" + strings.ReplaceAll(s, "\n", "\\n") + "\""
}

func TestInterval(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{
		{0, DefaultInterval}, {time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.jsonl")
			write(t, path, os.O_CREATE, "a\n")
			f := start(t, path, c.given)
			synctest.Wait()
			f.take()
			write(t, path, os.O_APPEND, "b\n")
			time.Sleep(c.want - time.Nanosecond)
			synctest.Wait()
			if got := f.take(); got != "" {
				t.Errorf("interval %v: got %q before its time", c.given, got)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := f.take(); got != "b\n" {
				t.Errorf("interval %v: got %q, want the new line", c.given, got)
			}
			f.cancel()
			<-f.err
		})
	}
}

// A canceled wait ends at once and permanently.
func TestCancelFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "run.jsonl")
		write(t, path, os.O_CREATE, "half")
		ctx, cancel := context.WithCancel(t.Context())
		r, err := OpenGrowing(ctx, path, time.Hour)
		check(t, err)
		defer r.Close()
		begin := time.Now()
		time.AfterFunc(time.Minute, cancel)
		p := make([]byte, 3)
		for _, want := range []string{"hal", "f"} {
			if n, err := r.Read(p); string(p[:n]) != want || err != nil {
				t.Errorf("got %q, %v; want %q", p[:n], err, want)
			}
		}
		for range 2 {
			if n, err := r.Read(p); n != 0 || err != io.EOF {
				t.Errorf("got %q, %v; want io.EOF", p[:n], err)
			}
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("ended after %v, want a minute", took)
		}
	})
}

func TestSmallReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	write(t, path, os.O_CREATE, "abc\ndef\ngh")
	r, err := OpenGrowing(t.Context(), path, 0)
	check(t, err)
	defer r.Close()
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("a read of nothing: got %d, %v", n, err)
	}
	var got []byte
	for p := make([]byte, 1); len(got) < len("abc\ndef\n"); {
		n, err := r.Read(p)
		check(t, err)
		got = append(got, p[:n]...)
	}
	if string(got) != "abc\ndef\n" {
		t.Errorf("got %q", got)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenGrowing(t.Context(), filepath.Join(dir, "none"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if _, err := OpenGrowing(t.Context(), dir, 0); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: got %v", err)
	}
}

// If the file is replaced by something unreadable, reading ends with an error.
func TestReplacedByDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move a file that is open")
	}
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "run.jsonl")
		write(t, path, os.O_CREATE, "a\n")
		f := start(t, path, 0)
		synctest.Wait()
		rotate(t, path)
		check(t, os.Mkdir(path, 0o700))
		if err := <-f.err; err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("got %v", err)
		}
		f.cancel()
	})
}
