// Package errortext extracts the text of an error from a line of a log, without anything that it may quote from a request:
// the name of an exception, and its message if that is about the machine; for other messages, the text up to the first
// quotation ([Said]). Lines that only differ in digits are reported once ([Complaints]). For known lines, it states in
// plain words what ended a process, which transfer of a KV cache failed, and what the runtime of a device reports.
package errortext
