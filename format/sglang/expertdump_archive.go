package sglang

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/pickle"
)

// An archive is a file written by torch.save: data.pkl, and the storages of its tensors.
type archive struct {
	dir   string // inside the archive, with a slash
	size  int64  // of the whole file
	files map[string]*zip.File
	// storage is the last storage that was read, and key its name.
	storage []byte
	key     string
}

// openArchive reads the directory of the archive.
func openArchive(f io.ReaderAt, size int64) (*archive, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) {
			err = errors.New("is cut off: its list of contents, which PyTorch writes last, is missing")
		}
		return nil, err
	}
	a := &archive{files: map[string]*zip.File{}, size: size}
	for _, f := range z.File {
		if dir, ok := strings.CutSuffix(f.Name, "data.pkl"); ok && strings.HasSuffix(dir, "/") {
			a.dir = dir
		}
		a.files[f.Name] = f
	}
	if a.dir == "" {
		return nil, errors.New("has no data.pkl")
	}
	if order := a.files[a.dir+"byteorder"]; order != nil {
		text, err := a.content(order, 16)
		if err != nil || string(text) != "little" {
			return nil, fmt.Errorf("has bytes in another order than little-endian (%q)", text)
		}
	}
	return a, nil
}

// content reads a file of at most most bytes.
func (a *archive) content(f *zip.File, most int64) ([]byte, error) {
	switch {
	case f.Method != zip.Store:
		return nil, fmt.Errorf("%s is compressed, which PyTorch does not do", f.Name)
	case f.UncompressedSize64 > uint64(most) || f.UncompressedSize64 != f.CompressedSize64:
		return nil, fmt.Errorf("%s cannot have %d bytes", f.Name, f.UncompressedSize64)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := memory.Make[byte](int(f.UncompressedSize64))
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return out, nil
}

// A tensor has integers, or floats with whole values.
type tensor struct {
	shape, stride []int64
	offset        int64
	size          int64 // of an element, in bytes
	read          func([]byte) int64
	data          []byte
}

// types are the allowed storages of counts and maps.
var types = map[string]struct {
	size int64
	read func([]byte) int64
}{
	"torch.IntStorage":    {4, func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }},
	"torch.LongStorage":   {8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }},
	"torch.ShortStorage":  {2, func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) }},
	"torch.ByteStorage":   {1, func(b []byte) int64 { return int64(b[0]) }},
	"torch.CharStorage":   {1, func(b []byte) int64 { return int64(int8(b[0])) }},
	"torch.FloatStorage":  {4, func(b []byte) int64 { return whole(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))) }},
	"torch.DoubleStorage": {8, func(b []byte) int64 { return whole(math.Float64frombits(binary.LittleEndian.Uint64(b))) }},
}

// whole converts a whole number; -1 for others.
func whole(v float64) int64 {
	if v != math.Trunc(v) || v < 0 || v > math.MaxUint32 {
		return -1
	}
	return int64(v)
}

// isKnownClass reports whether a pickle of PyTorch may have a class with this name.
func isKnownClass(class string) bool {
	switch class {
	case "torch._utils._rebuild_tensor_v2", "collections.OrderedDict", pickle.Persistent:
		return true
	}
	_, ok := types[class]
	// A tensor that is not read, such as one of booleans, may have any type.
	return ok || strings.HasPrefix(class, "torch.") && strings.HasSuffix(class, "Storage")
}

// tensor returns the tensor in a value.
func (a *archive) tensor(v pickle.Value) (*tensor, error) {
	if v.Class() != "torch._utils._rebuild_tensor_v2" {
		return nil, errors.New("has something else where counts should be")
	}
	args := v.Args()
	id := args.At(0).Args() // ("storage", type, key, device, elements)
	kind, ok := types[id.At(1).Class()]
	if !ok {
		return nil, fmt.Errorf("has counts of type %q", id.At(1).Class())
	}
	t := &tensor{offset: args.At(1).Int64(-1), size: kind.size, read: kind.read}
	last := t.offset
	for i := range args.At(2).Len() {
		n, step := args.At(2).At(i).Int64(-1), args.At(3).At(i).Int64(-1)
		if n < 0 || step < 0 || n > math.MaxInt32 || step > math.MaxInt32 {
			return nil, errors.New("has a tensor of an impossible shape")
		}
		t.shape, t.stride = append(t.shape, n), append(t.stride, step)
		last += max(0, n-1) * step
	}
	key := id.At(2).Text()
	if err := a.load(key); err != nil {
		return nil, err
	}
	if t.data = a.storage; t.offset < 0 || last < 0 || (last+1)*t.size > int64(len(t.data)) && t.len() > 0 {
		return nil, fmt.Errorf("has a tensor that is longer than its storage %q", key)
	}
	return t, nil
}

// load reads a storage. Consecutive tensors may share one.
func (a *archive) load(key string) error {
	if a.key == key && a.storage != nil {
		return nil
	}
	f := a.files[a.dir+"data/"+key]
	if f == nil {
		return fmt.Errorf("has no storage %q, which a tensor is in", key)
	}
	data, err := a.content(f, a.size)
	if err != nil {
		return err
	}
	a.storage, a.key = data, key
	return nil
}

// len returns the number of elements of a tensor.
func (t *tensor) len() int64 {
	n := int64(1)
	for _, d := range t.shape {
		if n *= d; n > math.MaxInt32*256 {
			return n
		}
	}
	return n
}

// each passes the elements in row-major order.
func (t *tensor) each(f func(i int, v int64)) {
	if t.len() == 0 {
		return
	}
	at, i := make([]int64, len(t.shape)), 0
	for {
		place := t.offset
		for k := range at {
			place += at[k] * t.stride[k]
		}
		f(i, t.read(t.data[place*t.size:]))
		i++
		k := len(at) - 1
		for ; k >= 0; k-- {
			if at[k]++; at[k] < t.shape[k] {
				break
			}
			at[k] = 0
		}
		if k < 0 {
			return
		}
	}
}
