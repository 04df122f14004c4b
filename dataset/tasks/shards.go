package tasks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Run is one shard's part of an extraction.
type Run struct {
	Folder    string   // the dataset
	Arguments []string // as the user named the inputs; the same for all shards
	Shard, Of int      // Of is 0 for all inputs
	Found     int      // number of inputs in all shards
}

// shardArguments is the content of arguments.json.
type shardArguments struct {
	Arguments []string `json:"arguments"`
	Of        int      `json:"shards"`
}

// shardResult is the content of the file of a finished shard.
type shardResult struct {
	Found     int `json:"found"` // number of inputs found, in all shards
	Extracted int `json:"extracted"`
}

// folder returns the folder of a run with the given number of shards; "*" is any.
func (r *Run) folder(shards string) string {
	sum := sha256.Sum256([]byte(strings.Join(r.Arguments, "\x00")))
	return filepath.Join(folderOf(r.Folder), "run="+hex.EncodeToString(sum[:8])+"-"+shards)
}

// Begin records that a shard begins. It is an error if the inputs are being extracted in a different number
// of shards, and some of those have not finished: an input is in one shard of 64, and in another of 32.
func (r *Run) Begin() error {
	if r.Of == 0 {
		return nil
	}
	own := r.folder(strconv.Itoa(r.Of))
	text, err := json.Marshal(shardArguments{r.Arguments, r.Of})
	if err != nil {
		return err
	}
	if _, err := claimIn(r.Folder, filepath.Join(own, "arguments.json"), append(text, '\n')); err != nil {
		return err
	}
	others, err := filepath.Glob(r.folder("*"))
	if err != nil {
		return err
	}
	for _, dir := range others {
		x := open(dir)
		if dir == own || x == nil || len(x.missing()) == 0 {
			continue
		}
		if mine := open(own); mine != nil && len(mine.shards) == 0 {
			os.RemoveAll(own) // leaves no trace of this attempt
		}
		return fmt.Errorf("--shard %d/%d: %s is being extracted in %d shards, of which %d have ended; go on with these, or forget them with 'sgtrace dataset prune --shards'",
			r.Shard, r.Of, strings.Join(r.Arguments, " "), x.Of, len(x.shards))
	}
	return nil
}

// End records that a shard has finished, and extracted the given number of inputs. A run without shards
// takes all inputs, and so makes unfinished runs with shards obsolete.
func (r *Run) End(extracted int) error {
	if r.Of > 0 {
		return r.end(extracted)
	}
	runs, err := filepath.Glob(r.folder("*"))
	for _, dir := range runs {
		if x := open(dir); x == nil || len(x.missing()) > 0 {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// end writes the result file of the shard.
func (r *Run) end(extracted int) error {
	text, err := json.Marshal(shardResult{r.Found, extracted})
	if err != nil {
		return err
	}
	path := filepath.Join(r.folder(strconv.Itoa(r.Of)), "done-"+strconv.Itoa(r.Shard)+".json")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = claimIn(r.Folder, path, append(text, '\n'))
	return err
}

// A shardedRun is the content of a run's files.
type shardedRun struct {
	shardArguments
	shards map[int]shardResult // the finished ones
	latest shardResult
}

// open reads the files of a run; nil if there are none.
func open(dir string) *shardedRun {
	x := &shardedRun{shards: map[int]shardResult{}}
	if !read(filepath.Join(dir, "arguments.json"), &x.shardArguments) {
		return nil
	}
	var newest time.Time
	for i := range x.Of {
		path := filepath.Join(dir, "done-"+strconv.Itoa(i)+".json")
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		var d shardResult
		if read(path, &d) {
			x.shards[i] = d
			if info.ModTime().After(newest) {
				newest, x.latest = info.ModTime(), d
			}
		}
	}
	return x
}

func read(path string, into any) bool {
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}

// missing returns the shards that have not finished.
func (x *shardedRun) missing() (shards []string) {
	for i := range x.Of {
		if _, ok := x.shards[i]; !ok {
			shards = append(shards, strconv.Itoa(i))
		}
	}
	return shards
}

// Missing describes, for each run, the shards or inputs that a dataset lacks.
func Missing(folder string) (all []string) {
	dirs, _ := filepath.Glob(filepath.Join(folderOf(folder), "run=*")) // the pattern is valid
	for _, dir := range dirs {
		x := open(dir)
		if x == nil {
			continue
		}
		of := strings.Join(x.Arguments, " ")
		extracted := 0
		for _, d := range x.shards {
			extracted += d.Extracted
		}
		switch shards := x.missing(); {
		case len(shards) > 0:
			all = append(all, fmt.Sprintf("of %s, %s never ended of %d", of, listed(shards), x.Of))
		case extracted < x.latest.Found:
			all = append(all, fmt.Sprintf("of %s, the shards have %d of %d inputs; some came later, so extract again", of, extracted, x.latest.Found))
		}
	}
	slices.Sort(all)
	return all
}

// listed lists shards, only the first ones if there are many: "shards 3, 17 and 12 more".
func listed(shards []string) string {
	const most = 8
	switch {
	case len(shards) == 1:
		return "shard " + shards[0]
	case len(shards) > most:
		return "shards " + strings.Join(shards[:most], ", ") + fmt.Sprintf(" and %d more", len(shards)-most)
	}
	return "shards " + strings.Join(shards, ", ")
}

// Forget removes the records of all shards.
func Forget(folder string) error {
	dirs, err := filepath.Glob(filepath.Join(folderOf(folder), "run=*"))
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
