package operators

import (
	"encoding/json"
	"strings"
)

// layerOf returns the work of operators whose shapes say it only with the values of their other inputs, which are as
// [profile.Frame.Values] has them; ok is false if it is another operator, or these are not known.
func layerOf(name string, in *inputs, values string) (w Work, ok bool) {
	convolves, normalizes := name == "aten::convolution", strings.HasSuffix(name, "_batch_norm")
	if !convolves && !normalizes {
		return w, false
	}
	var v []string
	if json.Unmarshal([]byte(values), &v) != nil {
		return w, false
	}
	if convolves {
		return convolution(in, v)
	}
	return batchNorm(in, v)
}

// batchNorm moves and scales channels. While it trains, it computes their mean and variance, too, and writes
// these.
func batchNorm(in *inputs, values []string) (w Work, ok bool) {
	const training = 5 // which input tells
	d := in.Dims(0)
	if len(d) < 2 || len(values) <= training {
		return w, false
	}
	n, channels := in.count(0), float64(d[1])
	w = Work{FLOPs: 2*n + 6*channels, Bytes: 2*in.bytes(0) + 4*channels*sizeOf(in.Type(0))}
	if values[training] == "True" {
		w.FLOPs += 3 * n
		w.Bytes += 2 * channels * sizeOf(in.Type(0))
	}
	return w, true
}

// convolution multiplies a window around each place of its input with each filter. A transposed one spreads each place
// over a window.
func convolution(in *inputs, values []string) (w Work, ok bool) {
	const stride, padding, dilation, transposed, added, numValues = 3, 4, 5, 6, 7, 9
	x, filter := in.Dims(0), in.Dims(1)
	if len(values) < numValues || len(x) < 3 || len(filter) != len(x) {
		return w, false
	}
	spread := values[transposed] == "True"
	places := float64(x[0])
	for i := range len(x) - 2 {
		s, p, d := sizeAt(values[stride], i), sizeAt(values[padding], i), sizeAt(values[dilation], i)
		if s < 1 || p < 0 || d < 1 {
			return w, false
		}
		reach := d*(filter[i+2]-1) + 1
		if spread {
			places *= float64((x[i+2]-1)*s - 2*p + reach + max(0, sizeAt(values[added], i)))
		} else {
			places *= float64((x[i+2]+2*p-reach)/s + 1)
		}
	}
	each := product(filter[1:]) // products of a result, or of a number that is spread
	w.Type = in.Type(0)
	results, multiplied := places*float64(filter[0]), 0.0
	if spread {
		var groups int64
		if groups = sizeAt("["+values[numValues-1]+"]", 0); groups < 1 {
			return w, false
		}
		results = places * float64(filter[1]*groups)
		multiplied = in.count(0)
	} else {
		multiplied = results
	}
	w.FLOPs = 2 * each * multiplied
	w.Bytes = in.bytes(0) + in.bytes(1) + results*sizeOf(w.Type)
	if in.Dims(2) != nil {
		w.FLOPs += results
		w.Bytes += in.bytes(2)
	}
	return w, true
}

// sizeAt returns a number of a list: "[16, 16]". A list of one is for all. -1 is unknown.
func sizeAt(list string, i int) int64 {
	var sizes []int64
	if json.Unmarshal([]byte(list), &sizes) != nil || len(sizes) == 0 || i >= len(sizes) && len(sizes) > 1 {
		return -1
	}
	return sizes[min(i, len(sizes)-1)]
}
