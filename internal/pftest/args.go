package pftest

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// entry adds a named DebugAnnotation to args.
func (d *decoder) entry(args map[string]any, b []byte) error {
	key, value, err := d.annotation(b)
	if err != nil {
		return err
	}
	if key == "" {
		return errors.New("argument without a name")
	}
	key = pathless(key)
	if _, ok := args[key]; ok {
		return fmt.Errorf("argument %q repeats", key)
	}
	args[key] = value
	return nil
}

// annotation reads a DebugAnnotation, which must hold one value.
func (d *decoder) annotation(b []byte) (key string, value any, err error) {
	fields, err := parse("DebugAnnotation", b, annotationRules)
	if err != nil {
		return "", nil, err
	}
	var held protowire.Number
	for _, f := range fields {
		if f.number == 1 {
			if key, err = d.lookup(argNames, f.num); err != nil {
				return "", nil, err
			}
			continue
		}
		if held != 0 && (held != f.number || f.number != 11 && f.number != 12) {
			return "", nil, fmt.Errorf("argument %q holds fields %d and %d", key, held, f.number)
		}
		held = f.number
		if value, err = d.value(f, value); err != nil {
			return "", nil, err
		}
	}
	if held == 0 {
		return "", nil, fmt.Errorf("argument %q has no value", key)
	}
	return key, value, nil
}

// value returns the value of a field of a DebugAnnotation; have is what the
// same field held before, an array or a dictionary.
func (d *decoder) value(f field, have any) (any, error) {
	switch f.number {
	case 2:
		return f.num != 0, nil
	case 3:
		return f.num, nil
	case 4:
		return int64(f.num), nil
	case 5:
		return f.double(), nil
	case 6:
		return text(f.data)
	case 11:
		dict, _ := have.(map[string]any)
		if dict == nil {
			dict = map[string]any{}
		}
		return dict, d.entry(dict, f.data)
	case 12:
		array, _ := have.([]any)
		key, value, err := d.annotation(f.data)
		if err == nil && key != "" {
			err = fmt.Errorf("element %q of an array has a name", key)
		}
		return append(array, value), err
	default:
		return d.lookup(argStrings, f.num)
	}
}
