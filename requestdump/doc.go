// Package requestdump reads what SGLang dumps of requests: crash dumps (--crash-dump-folder: crash_dump_*.pkl), with
// all that were in flight and those of the last minutes, and request dumps (/configure_logging), with those that ended.
// They are pickles of SGLang's classes: a class is a name here, and nothing is imported or called. Of each request
// its ID, its times, its tokens, and how it ended are kept. Prompts, answers, and keys never are.
//
// # What is odd
//
//   - Of a request that was in flight, finished is when the dump was made, and the answer has no finish reason.
//   - Before 2025-07, a request dump may be the bare list of requests.
//   - server_args is the whole configuration, with api_key in clear; None if it could not be pickled.
//   - A request dump has every thousand requests; the last ones, fewer than that, are never written.
//   - Times are Unix seconds; the one in the name of the file is local.
//   - Whole prompts, as text and as tokens, are among it: they are passed over while they are read.
package requestdump
