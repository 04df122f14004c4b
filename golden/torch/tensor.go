package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// A file is a file of torch.save: a pickle of protocol 2, and the storages of its tensors.
type file struct {
	*pickler
	storages [][]byte
}

// A tensor has int32 elements, or int64 if it is long.
type tensor struct {
	shape  []int
	values []int64
	long   bool
}

// save returns the content of a file whose archive has a name.
func save(stem string, root any) []byte {
	f := &file{pickler: newPickler(2)}
	f.Other = func(v any) { f.tensor(v.(tensor)) }
	f.Value(root)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: stem + "/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			panic(err) // writing to a buffer cannot fail
		}
	}
	add("data.pkl", f.End())
	add("byteorder", []byte("little"))
	for i, s := range f.storages {
		add(fmt.Sprintf("data/%d", i), s)
	}
	add("version", []byte("3\n"))
	add(".data/serialization_id", []byte("0000000000000000000000000000000000000000"))
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// ints writes a tuple of numbers.
func (f *file) ints(list []int) {
	f.Op('(')
	for _, n := range list {
		f.Value(n)
	}
	f.Op('t')
	f.Memoize()
}

// tensor writes torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks).
func (f *file) tensor(t tensor) {
	kind, raw := "IntStorage", []byte(nil)
	for _, v := range t.values {
		if t.long {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
		} else {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(int32(v)))
		}
	}
	if t.long {
		kind = "LongStorage"
	}
	f.Global("torch._utils", "_rebuild_tensor_v2")
	f.Op('(', '(')
	f.Value("storage")
	f.Global("torch", kind)
	f.Value(fmt.Sprint(len(f.storages)))
	f.Value("cpu")
	f.Value(len(t.values))
	f.Op('t')
	f.Memoize()
	f.Op('Q')
	f.Value(0)
	f.ints(t.shape)
	stride := make([]int, len(t.shape))
	n := 1
	for i := len(stride) - 1; i >= 0; i-- {
		stride[i] = n
		n *= t.shape[i]
	}
	f.ints(stride)
	f.Op(0x89)
	f.Global("collections", "OrderedDict")
	f.Op(')', 'R')
	f.Memoize()
	f.Op('t')
	f.Memoize()
	f.Op('R')
	f.Memoize()
	f.storages = append(f.storages, raw)
}

// csv writes lines of layer, expert, and count.
func csv(counts [][]int64) []byte {
	var b strings.Builder
	b.WriteString("layer_id,expert_id,count\n")
	for l, list := range counts {
		for e, n := range list {
			if n > 0 {
				fmt.Fprintf(&b, "%d,%d,%d\n", l, e, n)
			}
		}
	}
	return []byte(b.String())
}
