package main

// pages makes pages of what is in the source, or of what tests measure.
//
//	go run ./scripts pages formats >docs/FORMATS.md      # what is read of every producer, and every quirk
//	go run ./scripts pages licenses >FILE                # of all that the program is linked of
//	SGTRACE_SEEDS=100 go run ./scripts pages rates [-o docs/RATES.md] [-run REGEXP] [PACKAGE...]
//
// With -run, only tests of these names run, and the page keeps its rows of others.
func pages(args []string) error {
	choose("pages", map[string]func(args []string) error{"formats": formats, "licenses": licenses, "rates": rates}, args)
	return nil
}
