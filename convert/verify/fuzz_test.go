package verify

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// For any file, verification ends, and only succeeds if other readers get the same from it as from
// the written file.
func FuzzVerify(f *testing.F) {
	tr := randomModel(rand.New(rand.NewPCG(7, 8)), 300)
	var whole [2][]byte
	for i, x := range formats {
		var file bytes.Buffer
		if err := x.write(&file, tr); err != nil {
			f.Fatal(err)
		}
		whole[i] = file.Bytes()
		f.Add(uint8(i), whole[i])
		f.Add(uint8(i), whole[i][:file.Len()/2])
	}
	f.Fuzz(func(t *testing.T, which uint8, file []byte) {
		i := int(which) % len(formats)
		if _, err := formats[i].verify(bytes.NewReader(file), tr); err == nil {
			if have, want := formats[i].meaning(t, file), formats[i].meaning(t, whole[i]); !same(have, want) {
				t.Errorf("found equal: %q", file)
			}
		}
	})
}
