package tablefile

import (
	"sync"

	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// window is how far back a page is compared with itself, in bytes. Pages are shorter, but for the
// distinct values of a few columns.
const window = 1 << 20

// A codec compresses with zstd, as parquet-go does, in 1 MB instead of 16 MB for each core.
type codec struct {
	parquetzstd.Codec
	encoders sync.Pool
}

// Encode returns src compressed, in the place of dst if there is room.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	e, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, err
		}
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(src, dst[:0]), nil
}
