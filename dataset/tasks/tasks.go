// Package tasks coordinates processes that write to one dataset, at the same time or one after another, on
// one machine or many: they must agree on whether texts are redacted, with which key, and in how many shards
// the inputs are extracted. There is no server: everything is in small files of the dataset, each of which
// appears once, complete.
//
//	DATASET.key                      key of --redact, beside the dataset, so that the dataset can be shared without it
//	DATASET/v1/tasks/redaction.json  fingerprint of the key
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

// folderOf returns the folder of this package's files in a dataset.
func folderOf(folder string) string {
	return filepath.Join(folder, dataset.Version, dataset.TasksFolder)
}

// claimIn is claim for files of a dataset. If a process dies meanwhile, its leftovers are removed like
// those of unfinished captures.
func claimIn(folder, path string, content []byte) (there []byte, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return claim(path, filepath.Join(folder, dataset.Version), content, 0o666)
}

// claim writes a file unless it exists, and returns its content: of several concurrent processes, one
// writes the file, and all get the same content. The file is completed in the folder scratch first.
func claim(path, scratch string, content []byte, mode os.FileMode) (there []byte, err error) {
	if there, err = os.ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		return there, err
	}
	complete := filepath.Join(scratch, dataset.Unfinished+rand.Text())
	if err := os.WriteFile(complete, content, mode); err != nil {
		return nil, err
	}
	defer os.Remove(complete) // does nothing if it was renamed
	if err := os.Link(complete, path); err != nil && !errors.Is(err, os.ErrExist) {
		// Without hard links, as on a USB stick, the later of two processes wins.
		if err := os.Rename(complete, path); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(path)
}

// Key returns the key for redacting a dataset if the user gives none: the first task creates it.
func Key(folder string) ([]byte, error) {
	parent := filepath.Dir(KeyFile(folder)) // not in the dataset, where a leftover key might stay
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, err
	}
	return claim(KeyFile(folder), parent, []byte(rand.Text()+rand.Text()+"\n"), 0o600)
}

// KeyFile returns the path of that key.
func KeyFile(folder string) string { return filepath.Clean(folder) + ".key" }

// redaction is the content of redaction.json.
type redaction struct {
	Key string `json:"key"` // redact.Redactor.Check; "" is not redacted
}

// The errors if a dataset is redacted differently from what a task would do.
var (
	ErrNotRedacted = errors.New("was extracted without --redact, so that names in it stay; extract into another folder")
	ErrRedacted    = errors.New("is redacted: give --redact, or --redact-key with the key that it was made with")
	ErrOtherKey    = errors.New("was redacted with another key: pseudonyms of one name would differ; give the key that it was made with")
)

// AgreeOnKey returns an error unless all of a dataset is redacted with one key, identified by the check of
// its [redact.Redactor], or all of it without redaction, "".
func AgreeOnKey(folder, check string) error {
	path := filepath.Join(folderOf(folder), "redaction.json")
	want := redaction{check}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && dataset.HasCaptures(folder) {
		want.Key = "" // it is older than this file
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
