// Package commandline is what the program says about its own command line: help,
// the manual page, completion in shells, and what is wrong with a line. All of it is
// made from the commands and flags of a [cli.App], so that nothing is told twice.
// It knows no command: which there are, what values their flags take and which topics
// the help has besides, the program hands in.
//
// build.go says what the program was built of.
//
// In the order of a run:
//
//  1. [Prepare] gives the app the pages and messages of this package.
//  2. [MisplacedCommand] finds what the library would not understand, and
//     [AsksForHelp] what is a question.
//  3. [Reorder] puts flags in front of inputs, as the library wants them.
//  4. Errors of the command line are of type [UsageError].
package commandline
