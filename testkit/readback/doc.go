// Package readback says in tests what other programs make of files that we wrote.
//
//   - Perfetto: [Decode] interprets what package perfetto/reader reads as trace_processor v58
//     does: events in file order, an END closes the innermost open slice of its track, an
//     arrow points from the slice that starts first. What that would drop or repair without a
//     word is an error. When the real trace_processor is installed, [Processor] asks that, too.
//     [Model] makes models that are hard to write, for tests of any writer to compare with
//     what they get back.
//   - A headless browser, by the Chrome DevTools Protocol (chromium.go).
//   - DuckDB and ClickHouse, the real ones, as npm has them (engines.go). Both run inside
//     Node.js, so no server is started.
package readback
