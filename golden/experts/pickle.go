package experts

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// A file is what torch.save writes: a pickle of protocol 2, and the storages of its tensors.
type file struct {
	data     bytes.Buffer
	storages [][]byte
	memo     uint32
}

// A tensor is one of int32, or of int64 if it is long.
type tensor struct {
	shape  []int
	values []int64
	long   bool
}

// A dict keeps its order.
type dict []pair

type pair struct {
	key   string
	value any
}

// save returns the bytes of a file whose archive has a name.
func save(stem string, root any) []byte {
	f := &file{}
	f.data.Write([]byte{0x80, 2})
	f.put(root)
	f.data.WriteByte('.')
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: stem + "/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	add("data.pkl", f.data.Bytes())
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

// remember puts the value on top into the memo, as Python does with all that may be shared.
func (f *file) remember() {
	if f.memo < 256 {
		f.data.Write([]byte{'q', byte(f.memo)})
	} else {
		f.data.WriteByte('r')
		f.data.Write(binary.LittleEndian.AppendUint32(nil, f.memo))
	}
	f.memo++
}

func (f *file) text(s string) {
	f.data.WriteByte('X')
	f.data.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
	f.data.WriteString(s)
	f.remember()
}

func (f *file) global(module, name string) {
	f.data.WriteString("c" + module + "\n" + name + "\n")
	f.remember()
}

func (f *file) int(n int64) {
	switch {
	case n >= 0 && n < 256:
		f.data.Write([]byte{'K', byte(n)})
	case n >= math.MinInt32 && n <= math.MaxInt32:
		f.data.WriteByte('J')
		f.data.Write(binary.LittleEndian.AppendUint32(nil, uint32(int32(n))))
	default:
		f.data.Write([]byte{0x8a, 8})
		f.data.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
}

// ints writes a tuple of numbers.
func (f *file) ints(list []int) {
	f.data.WriteByte('(')
	for _, n := range list {
		f.int(int64(n))
	}
	f.data.WriteByte('t')
	f.remember()
}

func (f *file) put(v any) {
	switch v := v.(type) {
	case nil:
		f.data.WriteByte('N')
	case int:
		f.int(int64(v))
	case string:
		f.text(v)
	case float64:
		f.data.WriteByte('G')
		f.data.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
	case dict:
		f.data.WriteByte('}')
		f.remember()
		f.data.WriteByte('(')
		for _, p := range v {
			f.text(p.key)
			f.put(p.value)
		}
		f.data.WriteByte('u')
	case []any:
		f.data.WriteByte(']')
		f.remember()
		f.data.WriteByte('(')
		for _, x := range v {
			f.put(x)
		}
		f.data.WriteByte('e')
	case tensor:
		f.tensor(v)
	default:
		panic(fmt.Sprintf("%T", v))
	}
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
	f.global("torch._utils", "_rebuild_tensor_v2")
	f.data.WriteString("((")
	f.text("storage")
	f.global("torch", kind)
	f.text(fmt.Sprint(len(f.storages)))
	f.text("cpu")
	f.int(int64(len(t.values)))
	f.data.WriteString("t")
	f.remember()
	f.data.WriteString("Q")
	f.int(0)
	f.ints(t.shape)
	stride := make([]int, len(t.shape))
	n := 1
	for i := len(stride) - 1; i >= 0; i-- {
		stride[i] = n
		n *= t.shape[i]
	}
	f.ints(stride)
	f.data.WriteByte(0x89)
	f.global("collections", "OrderedDict")
	f.data.WriteString(")R")
	f.remember()
	f.data.WriteByte('t')
	f.remember()
	f.data.WriteByte('R')
	f.remember()
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
