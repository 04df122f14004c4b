// Command scripts does what the Makefile and the docs ask for, beside the program. Each word in front
// has a file of its own, which says what follows it:
//
//	go run ./scripts bench       # measures commands, for docs/PERFORMANCE.md
//	go run ./scripts dist        # builds what is handed out
//	go run ./scripts pages       # makes pages of what is in the source, or of what tests measure
//	go run ./scripts simulate    # writes inputs: scenarios with what there is to find, and large ones
package main

import (
	"log"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	choose("scripts", map[string]func(args []string) error{"bench": measure, "dist": release, "pages": pages, "simulate": simulate}, os.Args[1:])
}

// choose calls the function that the first of args names, with the others, and ends the program if it fails.
func choose(program string, functions map[string]func(args []string) error, args []string) {
	if len(args) == 0 || functions[args[0]] == nil {
		log.Fatalf("usage: %s %s", program, strings.Join(slices.Sorted(maps.Keys(functions)), " | "))
	}
	if err := functions[args[0]](args[1:]); err != nil {
		log.Fatalf("%s: %v", args[0], err)
	}
}
