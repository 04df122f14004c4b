package main

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed commands.txt
var commandsText string

// A set is what an @NAME in a command stands for.
var (
	setLine = regexp.MustCompile(`^@([a-z0-9]+) = (.*)$`)
	setName = regexp.MustCompile(`@[a-z0-9]+`)
	// ofShared matches a command that needs the shared data.
	ofShared = regexp.MustCompile(`(^|[ '"=/])(in|exports)/`)
)

// commands returns the lines of commands.txt to run, with the sets in them put in. Of a line
// that is quick, only the first member of each set is.
func commands(in inputs, opt options) ([]string, error) {
	var lines []string
	sets, not := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(commandsText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if m := setLine.FindStringSubmatch(line); m != nil {
			var err error
			if sets[m[1]], err = members(in, m[2]); err != nil {
				return nil, err
			}
			continue
		}
		if line, ok := strings.CutPrefix(line, "- "); ok {
			not[line] = true
			continue
		}
		line, quick := strings.CutPrefix(line, "* ")
		if opt.quick && !quick {
			continue
		}
		expanded, err := expand(line, sets, opt.quick)
		if err != nil {
			return nil, err
		}
		lines = append(lines, expanded...)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return not[line] || !opt.run.MatchString(line) || !in.shared && ofShared.MatchString(line)
	})
	return unique(lines), nil
}

// unique leaves out lines that were there before: sets overlap.
func unique(lines []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(line string) bool {
		before := seen[line]
		seen[line] = true
		return before
	})
}

// members are the words of a set. Those with a slash are patterns of inputs.
func members(in inputs, text string) ([]string, error) {
	var all []string
	for _, word := range strings.Fields(text) {
		if !strings.Contains(word, "/") {
			all = append(all, word)
			continue
		}
		paths, err := filepath.Glob(filepath.Join(in.dir, word))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
		if len(paths) == 0 && in.shared {
			return nil, fmt.Errorf("no input %s", word)
		}
		for _, path := range paths {
			name, err := filepath.Rel(in.dir, path)
			if err != nil {
				return nil, err
			}
			all = append(all, quoted(filepath.ToSlash(name)))
		}
	}
	return all, nil
}

// plain matches what the shell takes as it is.
var plain = regexp.MustCompile(`^[a-zA-Z0-9_./+=:,%-]+$`)

// quoted is a word of the shell.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// expand puts each member of a set, or the first alone, in the place of its name.
func expand(line string, sets map[string][]string, first bool) ([]string, error) {
	at := setName.FindStringIndex(line)
	if at == nil {
		return []string{line}, nil
	}
	name := line[at[0]:at[1]]
	set, ok := sets[name[1:]]
	if !ok {
		return nil, fmt.Errorf("no set %s: %s", name, line)
	}
	if first && len(set) > 1 {
		set = set[:1]
	}
	var lines []string
	for _, member := range set {
		more, err := expand(strings.ReplaceAll(line, name, member), sets, first)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}
