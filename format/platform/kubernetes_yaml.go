package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxYAML is how large a list as YAML may be: all of it is held. A cluster keeps its events for an hour.
const maxYAML = 64 << 20

// yaml reads what kubectl prints with -o yaml: a list of events, or one document an event. Both are what the JSON
// says, in another form. Of a damaged list, each event is read that is whole.
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
		for _, next := range [...]string{"\nkind:", "\nmetadata:", "\n---"} { // of the list
			if i := bytes.Index(item, []byte(next)); i >= 0 {
				end = min(end, i)
			}
		}
		_ = r.documents(append([]byte("  "), item[:end]...)) // what is wrong was said of the whole
	}
	return err
}

// documents reads documents, one after another.
func (r *eventReader) documents(text []byte) (err error) {
	defer func() { // of what is damaged, the decoder may give up so
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
