// Package transfer says which KV transfers between prefill and decode servers took longer than their size and those before them
// explain, between which servers, and since when.
package transfer
