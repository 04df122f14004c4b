// Package live has what goes on until somebody stops it: it prints the requests of a dump
// that grows, as they end ([Follower]), and hands one trace file to the Perfetto UI, which
// runs in the user's browser but is loaded from the internet ([Serve]).
//
//  1. [Listen] takes the only plain-http address that the UI's content security
//     policy lets it fetch from.
//  2. [Link] makes the address to show, or to open a browser at: it tells the UI
//     which file to fetch and what to do once it is loaded.
//  3. [Serve] answers until nobody has fetched the file for a while: a page that is
//     reloaded fetches it again.
//
// The file goes from this process to the browser and nowhere else. Pages of
// other sites are kept out by the Origin header, and by the Host header where a
// site points its own name at the loopback address (DNS rebinding). Both are
// promises of the browser: another user of this machine who guesses the file's
// name can send them too, for as long as Serve runs.
package live
