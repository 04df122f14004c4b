// Package host says what threads of the host did: the one stack of a thread that its calls,
// operators, Python functions and ranges make together.
//
//   - [Read] passes all that threads did in a stream, and [Frames] puts what a thread did in
//     order.
//   - A [Sweep] over these knows the stack at any moment.
//   - [Names] know what the name of a frame says: a lock, a library, an object whose address
//     differs from call to call.
//   - [FunctionOf] says whose code a function is, of a stack that was recorded as a whole.
//
// What the stack is asked for is up to the reports: why a device was idle (package gaps), or
// where the time went (package stacks).
package host
