// Package missing tells what a dump does not have: spans that were lost on their way, and
// ranks that fell silent while requests were in flight. Lost spans are no sign that
// anything is wrong with the servers; a rank that is silent is.
package missing
