// Package errortext says what a line of a log tells of an error, in words that nothing here knows, without what it may quote of
// a request: the name of an exception, and its message where that is about the machine; a message up to the first thing that is quoted
// ([Said]); and lines that differ in digits only are told once ([Complaints]). Of lines that are known it says in plain words what ended a
// process, which transfer of a KV cache failed, and what a device's runtime reports.
package errortext
