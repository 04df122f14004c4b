// Package live has the tasks that run until they are stopped: it prints the requests of a growing dump as
// they end ([Follower]), and serves one trace file to the Perfetto UI, which runs in the user's browser but
// is loaded from the internet ([Serve]).
//
//  1. [Listen] listens on the only plain-HTTP address that the UI's content security
//     policy lets it fetch from.
//  2. [Link] returns the address to print or to open in a browser: it tells the UI
//     which file to fetch and what to do once it is loaded.
//  3. [Serve] answers until nobody has fetched the file for a while: a page that is
//     reloaded fetches it again.
//
// The file goes from this process to the browser and nowhere else. The Origin header keeps pages of
// other sites out, and the Host header does if a site points its own name at the loopback address (DNS
// rebinding). Both rely on the browser: while Serve runs, another user of this machine who guesses the
// file's name can send the same headers.
package live
