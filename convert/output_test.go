package convert

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// named makes an output use a named temporary file, as on systems without unnamed ones.
func named(t *testing.T, o *Output) *Output {
	o.file.Close()
	if err := o.openNamed(); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutput(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, o *Output) *Output
	}{
		{"as the file system has it", func(_ *testing.T, o *Output) *Output { return o }},
		{"named", named},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "out.txt")
			// First a new file, then a replacement.
			for _, text := range []string{"first", "second"} {
				o, err := CreateFileOutput(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				o = test.make(t, o)
				before := files(t, dir)
				size, err := o.WriteFunc(func(w io.Writer) error {
					if now := files(t, dir); now != before {
						t.Errorf("files %s while writing, before %s", now, before)
					}
					_, err := io.WriteString(w, text)
					return err
				})
				if err != nil || size != int64(len(text)) {
					t.Fatalf("%d bytes, %v", size, err)
				}
				o.Abandon()
				data, err := os.ReadFile(name)
				if err != nil || string(data) != text || files(t, dir) != "out.txt=-rw-r--r--" {
					t.Errorf("%q, %v; files %s", data, err, files(t, dir))
				}
			}
			// Abandoned, before and after a failure.
			o, err := CreateFileOutput(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			o = test.make(t, o)
			broken := errors.New("broken")
			if _, err := o.WriteFunc(func(io.Writer) error { return broken }); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			o.Abandon()
			o.Abandon()
			if data, _ := os.ReadFile(name); string(data) != "second" || files(t, dir) != "out.txt=-rw-r--r--" {
				t.Errorf("%q after a failure; files %s", data, files(t, dir))
			}
		})
	}
}

// files lists a directory.
func files(t *testing.T, dir string) string {
	var list []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Name()+"="+info.Mode().String())
	}
	return strings.Join(list, " ")
}

// However the program ends, no temporary file remains.
func TestNamelessOutput(t *testing.T) {
	dir := t.TempDir()
	o, err := CreateFileOutput(filepath.Join(dir, "out.txt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Abandon()
	if o.temp != "" {
		t.Skip("no files without a name on " + dir)
	}
	if _, err := o.file.WriteString("half"); err != nil || files(t, dir) != "" {
		t.Errorf("files %q, %v", files(t, dir), err)
	}
}

func TestOutputRefusals(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.json")
	if err := os.WriteFile(in, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		isUsage bool
	}{
		{in, true},
		{filepath.Join(dir, ".", "..", filepath.Base(dir), "in.json"), true},
		{filepath.Join(dir, "out.txt"), true},
		{filepath.Join(dir, "none", "out.json"), false},
		{filepath.Join(dir, strings.Repeat("x", 300)+".json"), false},
		{filepath.Join(in, "out.json"), false},
	} {
		o, err := CreateOutput(test.name, []string{in})
		if err == nil {
			o.Abandon()
		}
		if err == nil || errors.Is(err, ErrOutputName) != test.isUsage {
			t.Errorf("%s: error %v", test.name, err)
		}
	}
}

func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"new.json", "./new.json", true},
		{"new.json", filepath.Join(dir, "new.json"), true},
		{"new.json", "other.json", false},
		{"new.json", filepath.Join("none", "new.json"), false},
	} {
		if have := SameFile(test.a, test.b); have != test.want {
			t.Errorf("SameFile(%s, %s) is %v", test.a, test.b, have)
		}
	}
}

// A full disk gives one message, whether the output is compressed or not.
func TestOutputFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, name := range []string{"out.json", "out.json.gz"} {
		o, err := CreateOutput(filepath.Join(t.TempDir(), name), nil)
		if err != nil {
			t.Fatal(err)
		}
		// With little data, the error only shows when the buffers are flushed at the end.
		for _, size := range []int{10, 10 << 20} {
			file := o.file
			o.file = full
			_, err = o.WriteFunc(func(w io.Writer) error {
				_, err := w.Write(bytes.Repeat([]byte("0123456789"), size/10))
				return err
			})
			o.file = file
			if want := "writing " + o.name + ": no space left on device"; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		o.Abandon()
	}
}
