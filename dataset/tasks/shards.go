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

// A Run is one shard of an extraction.
type Run struct {
	Folder    string   // of the dataset
	Arguments []string // by which the inputs were found, the same for all shards
	Shard, Of int      // Of is 0 if it takes all inputs
	Found     int      // inputs in all shards
}

// shardArguments is the content of arguments.json.
type shardArguments struct {
	Arguments []string `json:"arguments"`
	Of        int      `json:"shards"`
}

// shardResult is the content of the file of a shard that ended.
type shardResult struct {
	Found     int `json:"found"` // inputs that the arguments led to, in all shards
	Extracted int `json:"extracted"`
}

// folder returns that of a run with so many shards; "*" is any.
func (r *Run) folder(shards string) string {
	sum := sha256.Sum256([]byte(strings.Join(r.Arguments, "\x00")))
	return filepath.Join(folderOf(r.Folder), "run="+hex.EncodeToString(sum[:8])+"-"+shards)
}

// Begin notes that a shard begins. It is an error that there are shards of another number of
// them, of which some have not ended: an input is in one shard of 64 and in another one of 32.
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
			os.RemoveAll(own) // nobody has to know of this try
		}
		return fmt.Errorf("--shard %d/%d: %s is being extracted in %d shards, of which %d have ended; go on with these, or forget them with 'sgtrace dataset prune --shards'",
			r.Shard, r.Of, strings.Join(r.Arguments, " "), x.Of, len(x.shards))
	}
	return nil
}

// End notes that a shard has ended, which extracted so many inputs. Whoever takes all inputs makes
// shards superfluous that did not end.
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

// end writes the file of the shard.
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

// A shardedRun is what the files of a run say.
type shardedRun struct {
	shardArguments
	shards map[int]shardResult // that have ended
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

// missing lists the shards that have not ended.
func (x *shardedRun) missing() (shards []string) {
	for i := range x.Of {
		if _, ok := x.shards[i]; !ok {
			shards = append(shards, strconv.Itoa(i))
		}
	}
	return shards
}

// Missing says of each run which shards of its inputs a dataset lacks.
func Missing(folder string) (all []string) {
	dirs, _ := filepath.Glob(filepath.Join(folderOf(folder), "run=*")) // the pattern is a good one
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

// listed names shards, the first ones if there are many: "shards 3, 17 and 12 more".
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

// Forget forgets which shards there were.
func Forget(folder string) error {
	dirs, err := filepath.Glob(filepath.Join(folderOf(folder), "run=*"))
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
