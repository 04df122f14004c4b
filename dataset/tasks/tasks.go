// Package tasks coordinates processes that write to one dataset, at the same time or one after
// the other, on one machine or on many: they must agree whether texts are redacted and with
// which key, and in how many shards the inputs are extracted. There is no server: all of it is in small files
// of the dataset, each of which appears once, complete.
//
//	DATASET.key                      key of --redact, beside the dataset: who gets the one need not get the other
//	DATASET/v1/tasks/redaction.json  what tells that key from others
//	DATASET/v1/tasks/run=<arguments>-<shards>/arguments.json
//	DATASET/v1/tasks/run=<arguments>-<shards>/done-<shard>.json
package tasks

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/dataset"
)

// folderOf returns where a dataset has the files of this package.
func folderOf(folder string) string {
	return filepath.Join(folder, dataset.Version, dataset.TasksFolder)
}

// claimIn is claim for files of a dataset: what a process leaves that dies meanwhile is removed with
// what others left of captures.
func claimIn(folder, path string, content []byte) (there []byte, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return claim(path, filepath.Join(folder, dataset.Version), content, 0o666)
}

// claim writes a file unless it is there, and returns what it says then: of several processes
// that do so, one writes it. The file is made complete in the folder scratch.
func claim(path, scratch string, content []byte, mode os.FileMode) (there []byte, err error) {
	if there, err = os.ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		return there, err
	}
	complete := filepath.Join(scratch, dataset.Unfinished+rand.Text())
	if err := os.WriteFile(complete, content, mode); err != nil {
		return nil, err
	}
	defer os.Remove(complete) // nothing is left of it if it was renamed
	if err := os.Link(complete, path); err != nil && !errors.Is(err, os.ErrExist) {
		// Without links, as on a USB stick, of two processes the later one counts.
		if err := os.Rename(complete, path); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(path)
}

// Key returns the key with which a dataset is redacted whose user gives none: the first task
// makes it.
func Key(folder string) ([]byte, error) {
	parent := filepath.Dir(KeyFile(folder)) // in the dataset, the key might stay there
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, err
	}
	return claim(KeyFile(folder), parent, []byte(rand.Text()+rand.Text()+"\n"), 0o600)
}

// KeyFile returns where that key is.
func KeyFile(folder string) string { return filepath.Clean(folder) + ".key" }

// redaction is the content of redaction.json.
type redaction struct {
	Key string `json:"key"` // redact.Redactor.Check; "" is not redacted
}

// What is wrong if a dataset is redacted otherwise than a task would.
var (
	ErrNotRedacted = errors.New("was extracted without --redact, so that names in it stay; extract into another folder")
	ErrRedacted    = errors.New("is redacted: give --redact, or --redact-key with the key that it was made with")
	ErrOtherKey    = errors.New("was redacted with another key: pseudonyms of one name would differ; give the key that it was made with")
)

// AgreeOnKey returns an error unless all of a dataset is redacted with one key, by the check of a
// [redact.Redactor], or without any, "".
func AgreeOnKey(folder, check string) error {
	path := filepath.Join(folderOf(folder), "redaction.json")
	want := redaction{check}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && dataset.HasCaptures(folder) {
		want.Key = "" // it is from before there was such a file
	}
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	there, err := claimIn(folder, path, append(text, '\n'))
	if err != nil {
		return err
	}
	var is redaction
	if err := json.Unmarshal(there, &is); err != nil {
		return err
	}
	switch {
	case is.Key == check:
		return nil
	case is.Key == "":
		return ErrNotRedacted
	case check == "":
		return ErrRedacted
	}
	return ErrOtherKey
}
