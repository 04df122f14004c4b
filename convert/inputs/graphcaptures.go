package inputs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// While they capture their CUDA graphs, servers record what they launch into separate files, usually in a
// folder beside the traces.
var (
	// captureFolders are the names of these folders in vLLM and SGLang.
	captureFolders = []string{"capture_traces", "capture_torch_profiler"}
	// captureFiles matches the names of these files: "bs_32_rank0.json.gz",
	// "graph_capture_rank_0.1773.pt.trace.json.gz", "cuda_graph_capture-decode-TP-0.json.gz".
	captureFiles = lazyregexp.New(`^(bs_\d+_rank\d+|graph_capture_rank_?\d+|cuda_graph_capture)\b`)
)

// captureList is vLLM's file with the number of tokens of each capture.
const captureList = "execution_details.json"

// SplitCaptures separates recordings of graph captures found by a search, and all annotations of graph
// nodes, from the other inputs. It also finds those in folders beside the other inputs.
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
		return files, nil // the captures are the actual inputs
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

// CaptureSizes returns the number of tokens of captures, by file, where captureList has it.
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

// listOf reads the captureList of a folder; nil if there is no readable one.
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
