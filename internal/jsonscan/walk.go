package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Each walks over the next object or list without holding all of it. It calls member with every key of an
// object, and element for every element of a list; they must read the value. It returns the bracket and its
// offset, and io.EOF at the end of the input.
func Each(d *json.Decoder, member func(key string) error, element func() error) (bracket json.Delim, at int64, err error) {
	t, err := d.Token()
	if err != nil {
		return 0, d.InputOffset(), err
	}
	bracket, at = 0, d.InputOffset()-1
	switch t {
	case json.Delim('{'):
		bracket = '{'
	case json.Delim('['):
		bracket = '['
	default:
		return 0, at, fmt.Errorf("%v in the place of an object or a list", t)
	}
	if bracket == '{' && member == nil {
		return bracket, at, errors.New("an object in the place of a list")
	}
	for err == nil && d.More() {
		if bracket == '[' {
			err = element()
			continue
		}
		var key json.Token
		if key, err = d.Token(); err == nil {
			err = member(fmt.Sprint(key))
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return bracket, at, err
}

// Next returns the next value, and its offset in the input.
func Next(d *json.Decoder) (raw json.RawMessage, at int64, err error) {
	if err := d.Decode(&raw); err != nil {
		return nil, d.InputOffset(), err
	}
	return raw, d.InputOffset() - int64(len(raw)), nil
}

// Members passes the members of the object at b[i], each with its raw key from between the quotes and its raw
// value, and returns where the object ends. It does not look inside the values.
func Members(b []byte, i int, yield func(key, value []byte)) (next int, err error) {
	if i >= len(b) {
		return i, ErrShort
	}
	if b[i] != '{' {
		return i, ErrSyntax
	}
	if i = Space(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key, _, k, err := String(b, Space(b, i))
		if err != nil {
			return k, err
		}
		if k = Space(b, k); k >= len(b) {
			return k, ErrShort
		}
		if b[k] != ':' {
			return k, ErrSyntax
		}
		k = Space(b, k+1)
		end, err := Value(b, k)
		if err != nil {
			return end, err
		}
		yield(key, b[k:end])
		if i = Space(b, end); i >= len(b) {
			return i, ErrShort
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i++
		default:
			return i, ErrSyntax
		}
	}
}
