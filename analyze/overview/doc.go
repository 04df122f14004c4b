// Package overview is the summary: the one screen that says what was read, how far it
// can be trusted, how the requests did, and what stands out. What stands out comes from
// package finders; as a document, the overview also says what these looked at.
//
// A list of findings is text, Markdown, and tables (listing.go).
package overview
