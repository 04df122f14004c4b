// Package pace tells whether steps of servers take longer than before for the same work, on which servers, or whether there is
// more of it. It compares steps as requests, names of annotations, or logs and metrics tell of them, with what a model says that
// steps of such work usually take.
package pace
