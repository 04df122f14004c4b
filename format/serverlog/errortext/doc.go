// Package errortext takes the text of an error from a line of a log, without anything that it may quote from a request: the name
// of an exception, and its message if that is about the machine; and any other message up to the first quotation ([Said]). Lines that
// differ only in digits are reported once ([Complaints]). For lines that it knows, it says in plain words what ended a process, which
// transfer of a KV cache failed, and what the runtime of a device reports.
package errortext
