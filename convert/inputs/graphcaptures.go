package inputs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// Servers write what they launched while they captured their CUDA graphs to files of their own,
// usually into a folder beside the traces.
var (
	// captureFolders are what these folders are called: by vLLM and by SGLang.
	captureFolders = []string{"capture_traces", "capture_torch_profiler"}
	// captureFiles matches the files: "bs_32_rank0.json.gz", "graph_capture_rank_0.1773.pt.trace.json.gz",
	// "cuda_graph_capture-decode-TP-0.json.gz".
	captureFiles = lazyregexp.New(`^(bs_\d+_rank\d+|graph_capture_rank_?\d+|cuda_graph_capture)\b`)
)

// captureList is the file of vLLM that says for how many tokens each capture is.
const captureList = "execution_details.json"

// SplitCaptures takes the captures of graphs out of the inputs of a search, and annotations of their nodes
// out of all inputs, and adds those that lie in folders beside the others.
func SplitCaptures(files []Input) (others, captures []Input) {
	listed, folders := map[string]map[string]bool{}, map[string]bool{}
	for _, in := range files {
		dir := filepath.Dir(in.Path())
		if _, ok := listed[dir]; !ok {
			listed[dir] = map[string]bool{}
			for name := range listOf(dir) {
				listed[dir][name] = true
			}
		}
		switch name := filepath.Base(in.Path()); {
		case in.annotates():
			captures = append(captures, in)
		case in.Search != nil && (slices.Contains(captureFolders, filepath.Base(dir)) || captureFiles.MatchString(name) || listed[dir][name]):
			captures = append(captures, in)
		default:
			others = append(others, in)
			folders[dir], folders[filepath.Dir(dir)] = true, true
		}
	}
	if len(others) == 0 {
		return files, nil // they are what is asked for
	}
	for dir := range folders {
		captures = append(captures, annotationsIn(dir)...)
		for _, name := range captureFolders {
			if found, err := (globs{}).find(filepath.Join(dir, name)); err == nil {
				captures = append(captures, found...)
			}
		}
	}
	return others, Unique(captures)
}

// CaptureSizes returns for how many tokens captures are, by file, where it is written beside them.
func CaptureSizes(captures []Input) map[string]int64 {
	sizes := map[string]int64{}
	byFolder := map[string][]Input{}
	for _, in := range captures {
		dir := filepath.Dir(in.Path())
		byFolder[dir] = append(byFolder[dir], in)
	}
	for dir, files := range byFolder {
		list := listOf(dir)
		for _, in := range files {
			if size, ok := list[filepath.Base(in.Path())]; ok {
				sizes[in.Name] = size
			}
		}
		if len(files) == 1 && len(list) == 1 { // the file was renamed
			for _, size := range list {
				sizes[files[0].Name] = size
			}
		}
	}
	return sizes
}

// listOf reads the list in a folder; nil if there is none that can be read.
func listOf(dir string) map[string]int64 {
	text, err := os.ReadFile(filepath.Join(dir, captureList))
	if err != nil {
		return nil
	}
	var rows []struct {
		File  string `json:"file"`
		Batch int64  `json:"batch_size"`
	}
	if json.Unmarshal(text, &rows) != nil {
		return nil
	}
	list := map[string]int64{}
	for _, r := range rows {
		list[filepath.Base(r.File)] = r.Batch
	}
	return list
}
