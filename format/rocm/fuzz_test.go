package rocm_test

import (
	"os"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testexport"
)

// In files of any form and with any contents, no row ends before it begins.
func FuzzRead(f *testing.F) {
	r := testexport.NewROCm(11, 2, 1)
	for i := range forms {
		path := forms[i].in(f.TempDir())
		if err := forms[i].write(r, path); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)
	}
	f.Fuzz(func(t *testing.T, form uint8, data []byte) {
		path := forms[int(form)%len(forms)].in(t.TempDir())
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		src, opt, err := index(t, forms[int(form)%len(forms)].format, path, profile.Filter{})
		if err != nil {
			return
		}
		for _, p := range src.Profiles {
			lines(src, opt, p.Meta.PID)
			for i := range p.Events {
				if p.Events[i].Dur < 0 {
					t.Errorf("event %d lasts %d ns", i, p.Events[i].Dur)
				}
			}
		}
	})
}
