// Package readback checks in tests how other programs read the files that we write.
//
//   - Perfetto: [Decode] interprets the output of package perfetto/reader as trace_processor v58 does: events in file
//     order, an END closes the innermost open slice of its track, an arrow points from the slice that starts first.
//     Anything that trace_processor would silently drop or repair is an error. If the real trace_processor is installed,
//     [Processor] queries it, too. [Model] makes models that are hard to write, for tests of any writer to compare with the
//     result.
//   - A headless browser, by the Chrome DevTools Protocol (chromium.go).
//   - The real DuckDB and ClickHouse, from npm (engines.go). Both run inside Node.js, so no server is started.
package readback
