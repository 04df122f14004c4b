// Package commandline provides help, the manual page, shell completion, and error messages for a command
// line, all derived from the commands and flags of a [cli.App]. It knows no command itself: the caller
// passes in the commands, the values of their flags, and the other help topics.
//
// build.go describes the build. selection.go reads the flags shared by several commands, which select
// requests, a window of time, hosts, ranks, and stages; choices.go lists the alternatives if they select
// nothing.
//
// In the order of a run:
//
//  1. [Prepare] gives the app the pages and messages of this package.
//  2. [MisplacedCommand] finds mistakes that the library would misunderstand, and
//     [AsksForHelp] finds requests for help.
//  3. [Reorder] moves flags before inputs, as the library requires.
//  4. Errors of the command line are of type [UsageError].
package commandline
