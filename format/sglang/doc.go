// Package sglang reads what SGLang's servers write about themselves on request, or when they crash: token counts of experts
// ([ExpertDump]), dumps of requests ([RequestDump]), and responses about their state ([ServerState]). Their logs are in
// package serverlog.
package sglang
