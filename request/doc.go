// Package request is the part of the event model that is about requests: typed tables,
// which refer to each other by index, of what serving requests went through. It knows
// no format and no producer. Whoever fills the tables of a [Set] (package assembly, of
// spans) says what things mean, and everybody else asks for the meaning.
//
// The tables, each above what refers to it:
//
//	Files, Writers, Sources   what was read, which processes wrote it, which of both a row is from
//	Procs                     threads of server processes: host, role, rank
//	Requests                  what a user asked for: id, how it ended, metrics
//	Parts                     what one server did for a request
//	Threads                   the share of a part that one proc had
//	Rows                      whatever took time: a part, a share, a stage of it, what happened beside requests
//	Instants, Links           points in time that rows report; which row follows from which
//	Stages                    the meaning of stages, by name
//
// The words:
//
//   - A [Part] is what one server did for a request. A unified server has one part per
//     request; with prefill/decode disaggregation there are a prefill and a decode
//     part, and a sender part per prefill rank for Mooncake.
//   - A [Thread] is the share of a part that one thread of one process had; its
//     [Proc] says which host, role and rank that was.
//   - A stage is a row under a thread: waiting, a prefill, a decode step. Its [Phase]
//     says what it is for, its [Meaning] exactly which one it is where somebody asks.
//   - A [Request] joins the parts, and the gateway's rows, of one request.
//   - A row that no rule recognizes is [Generic]; nothing is dropped.
//
// A [Selection] leaves rows out, and whole requests; tables keep their indexes.
package request
