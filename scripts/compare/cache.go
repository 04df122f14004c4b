package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A Cache knows what commands of the base did. It is of one program, one state of the inputs
// and one environment; a command that is new or changed is not in it.
type cache struct {
	path string

	mu      sync.Mutex
	results map[string]result
	changed bool
}

// openCache reads the results that a program had before.
func openCache(dir, program string, in inputs) (*cache, error) {
	_, sum, err := digest(program)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(fmt.Appendln(nil, sum, in.print, environment))
	c := &cache{path: filepath.Join(dir, fmt.Sprintf("%x.json", key[:12])), results: map[string]result{}}
	return c, c.read()
}

// read adds what the file has.
func (c *cache) read() error {
	data, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &c.results); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}

func (c *cache) get(line string) (result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.results[line]
	return r, ok
}

func (c *cache) put(line string, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[line], c.changed = r, true
}

// save writes the file anew, if there is something new. What another run has written
// meanwhile stays.
func (c *cache) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	if err := c.read(); err != nil {
		return err
	}
	data, err := json.Marshal(c.results)
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "unfinished-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has its name
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path)
}
