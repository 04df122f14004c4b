// Package request is the part of the event model about requests: typed tables, which refer to each other by
// index, of what serving requests involved. It knows no format and no producer. Whoever fills the tables of a
// [Set] (package assembly, from spans) assigns the meanings, and everybody else queries them.
//
// The tables, each above what refers to it:
//
//	Files, Writers, Sources   the inputs, the processes that wrote them, the source (file and writer) of a row
//	Procs                     threads of server processes: host, role, rank
//	Requests                  what a user asked for: ID, how it ended, metrics
//	Parts                     what one server did for a request
//	Threads                   what one proc did for a part
//	Rows                      anything that took time: a part, a thread, a stage of it, work beside requests
//	Instants, Links           points in time that rows report; which row follows from which
//	Stages                    the meaning of stages, by name
//
// The terms:
//
//   - A [Part] is what one server did for a request. A unified server has one part per
//     request; with prefill/decode disaggregation there are a prefill and a decode
//     part, and a sender part per prefill rank for Mooncake.
//   - A [Thread] is what one thread of a process did for a part; its
//     [Proc] says on which host, role, and rank.
//   - A stage is a row under a thread: waiting, a prefill, a decode step. Its [Phase]
//     is its purpose; its [Meaning] says exactly what it is, where code depends on that.
//   - A [Request] joins the parts, and the gateway's rows, of one request.
//   - A row that no rule recognizes is [Generic]; nothing is dropped.
//
// A [Selection] leaves out rows and whole requests; tables keep their indexes.
package request
