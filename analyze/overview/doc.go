// Package overview builds the summary: one screen that says what was read, how far to trust it, how the requests did,
// and what stands out. The findings come from package finders; as a document, the overview also lists what each
// finder looked at.
//
// listing.go prints a list of findings as text, Markdown, and tables.
package overview
