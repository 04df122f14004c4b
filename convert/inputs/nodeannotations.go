package inputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// PyTorch writes a program's names for the nodes of its CUDA graphs (mark_kernels, since 2026) to a file
// for each rank: {"12884901889": [{"name": "attention", "stream": 7}], …}. The keys are node IDs. The first
// versions wrote plain strings into the lists.
var (
	// annotationFiles matches the names of these files: "kernel_annotations_rank0_17.json".
	annotationFiles = lazyregexp.New(`^kernel_annotations_rank(\d+)(_[^/]*)?\.json(\.gz|\.zst)?$`)
	// annotationHead matches their beginning, whatever their name.
	annotationHead = lazyregexp.New(`^\s*\{\s*"[0-9]+"\s*:\s*\[`)
)

// annotates reports whether an input has annotations of graph nodes.
func (in Input) annotates() bool {
	name := filepath.Base(in.Path())
	if in.capture != nil || !strings.Contains(strings.ToLower(name), ".json") {
		return false
	}
	if annotationFiles.MatchString(name) {
		return true
	}
	if info, err := os.Stat(in.Path()); err != nil || !info.Mode().IsRegular() {
		return false // reading from a pipe would consume its content
	}
	f, err := os.Open(in.Path())
	if err != nil {
		return false
	}
	defer f.Close()
	content, err := envelope.Open(in.Name, f)
	if err != nil {
		return false
	}
	defer content.Close()
	return annotationHead.Match(content.Head)
}

// annotationsIn finds the annotation files in a folder.
func annotationsIn(dir string) (found []Input) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if annotationFiles.MatchString(e.Name()) {
			path := filepath.Join(dir, e.Name())
			found = append(found, Input{Name: path, Search: &Search{Name: dir}})
		}
	}
	return found
}

// Annotations returns the inputs that have annotations of graph nodes.
func Annotations(files []Input) (list []Input) {
	return order.Only(files, func(in Input) bool { return in.annotates() })
}

// ReadAnnotations reads the annotation files among recordings of captures, and returns the other files.
func ReadAnnotations(files []Input, diags *trace.Diags) (others []Input, list []profile.NodeAnnotations) {
	for _, in := range files {
		if !in.annotates() {
			others = append(others, in)
			continue
		}
		a := profile.NodeAnnotations{File: in.Name, Rank: -1, Names: map[int64]string{}}
		if m := annotationFiles.FindStringSubmatch(filepath.Base(in.Path())); m != nil {
			if rank, err := strconv.ParseInt(m[1], 10, 32); err == nil {
				a.Rank = int32(rank)
			}
		}
		if err := readAnnotations(in, a.Names, diags); err != nil {
			diags.Add(trace.AnnotationsDamaged.Of(in.Name, err))
		}
		if len(a.Names) > 0 {
			list = append(list, a)
		}
	}
	return others, list
}

// readAnnotations reads one file. After an error, names has everything before it.
func readAnnotations(in Input, names map[int64]string, diags *trace.Diags) (err error) {
	f, err := os.Open(in.Path())
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := envelope.Open(in.Name, f)
	if err != nil {
		return err
	}
	defer content.Close()
	d := json.NewDecoder(content)
	d.UseNumber()
	at := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}
	if t, err := d.Token(); err != nil {
		return at(err)
	} else if t != json.Delim('{') {
		return at(errors.New("no object"))
	}
	odd := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return at(err)
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return at(err)
		}
		node, err := strconv.ParseUint(key.(string), 10, 64)
		name := annotationName(value)
		if err != nil || node == 0 || name == "" {
			odd++
			continue
		}
		names[int64(node)] = name
	}
	if odd > 0 {
		diags.Add(trace.AnnotationsOdd.Of(in.Name).Times(odd))
	}
	if _, err := d.Token(); err != nil {
		return at(err)
	}
	return nil
}

// annotationName returns the annotations of a node as text, "" if they are empty: "attention", "attention
// layer=3". If a key repeats, the last one counts, as in PyTorch's own tool. The stream on which the node
// was captured is not part of the name.
func annotationName(value any) string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	said := map[string]string{}
	for _, entry := range list {
		switch x := entry.(type) {
		case string:
			said["name"] = x
		case map[string]any:
			for key, v := range x {
				if key == "str" { // used by the first versions
					key = "name"
				}
				said[key] = annotationValue(v)
			}
		}
	}
	parts := []string{said["name"]}
	delete(said, "name")
	delete(said, "stream")
	for _, key := range slices.Sorted(maps.Keys(said)) {
		parts = append(parts, key+"="+said[key])
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func annotationValue(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	}
	text, _ := json.Marshal(v) // cannot fail: it was decoded from JSON
	return string(text)
}
