package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxYAML is the largest size of a YAML list: all of it is held. A cluster keeps its events for an hour.
const maxYAML = 64 << 20

// yaml reads the output of kubectl with -o yaml: a list of events, or one document per event. Both are the JSON in another
// form. Of a damaged list, it reads each intact event.
func (r *eventReader) yaml(content io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(content, maxYAML))
	if err != nil {
		return err
	}
	before := r.n
	if err = r.documents(text); err == nil || r.n > before {
		return err
	}
	for _, item := range bytes.Split(text, []byte("\n- "))[1:] {
		end := len(item)
		for _, next := range [...]string{"\nkind:", "\nmetadata:", "\n---"} { // in the list
			if i := bytes.Index(item, []byte(next)); i >= 0 {
				end = min(end, i)
			}
		}
		_ = r.documents(append([]byte("  "), item[:end]...)) // the damage was already reported for the whole list
	}
	return err
}

// documents reads documents, one after another.
func (r *eventReader) documents(text []byte) (err error) {
	defer func() { // on damaged input, the decoder may panic
		if p := recover(); p != nil {
			err = fmt.Errorf("is not the YAML of kubectl: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document any
		switch err := d.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		asJSON, err := json.Marshal(document)
		if err != nil {
			return fmt.Errorf("is not the YAML of kubectl: %w", err)
		}
		if err := r.json(bytes.NewReader(asJSON)); err != nil {
			return err
		}
	}
}
