// Package commandline makes help, the manual page, completion in shells, and messages
// about mistakes in a command line, all from the commands and flags of a [cli.App].
// It knows no command itself: the caller passes in the commands, the values that their
// flags take, and the other topics of the help.
//
// build.go says what the program was built of. selection.go reads the flags that several commands have,
// which choose what a command is about: which requests, which window of time, which hosts, ranks, and
// stages; choices.go says what there is to choose from if they choose nothing.
//
// In the order of a run:
//
//  1. [Prepare] gives the app the pages and messages of this package.
//  2. [MisplacedCommand] finds what the library would not understand, and
//     [AsksForHelp] what is a question.
//  3. [Reorder] puts flags in front of inputs, as the library wants them.
//  4. Errors of the command line are of type [UsageError].
package commandline
