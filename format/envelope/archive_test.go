package envelope

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack unpacks arbitrary data: only plain files below the folder are written, within the size
// limit.
func FuzzUnpack(f *testing.F) {
	var asTar, asZip bytes.Buffer
	t, z := tar.NewWriter(&asTar), zip.NewWriter(&asZip)
	for _, name := range []string{"a/b.json", "../up.json", "a/b.json/c", "/root.json"} {
		t.WriteHeader(&tar.Header{Name: name, Size: 2, Mode: 0o644})
		t.Write([]byte("{}"))
		w, _ := z.Create(name)
		w.Write([]byte("{}"))
	}
	t.WriteHeader(&tar.Header{Name: "a/link", Linkname: "..", Typeflag: tar.TypeSymlink})
	t.Close()
	z.Close()
	f.Add(asTar.Bytes())
	f.Add(asZip.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		dir, path := filepath.Join(outer, "in"), filepath.Join(outer, "archive")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		Unpack(path, dir)
		if list, _ := os.ReadDir(outer); len(list) != 2 {
			t.Errorf("outside of the folder there is %v", list)
		}
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() && !e.Type().IsRegular() {
				t.Errorf("%s: %v %v", path, e, err)
			}
			return nil
		})
	})
}
