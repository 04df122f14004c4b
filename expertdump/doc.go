// Package expertdump reads what SGLang's expert distribution recorder writes: which expert got how
// many tokens (expert_distribution_recorder_*.pt, and the CSV files before 2025-05), and files that
// say where experts are (--init-expert-location).
//
// # What is odd
//
//   - A .pt file is a zip archive of PyTorch: a pickle, and the numbers of each tensor beside it. The pickle is
//     read as values; what would be called is not. Files of PyTorch before 1.6 are no archives and are not read.
//   - Files of the mode stat have logical experts, and are summed over ranks. Their passes are places
//     of a buffer that is written round and round, and empty ones were never written.
//   - Files of the modes per_pass and per_token have physical experts, and are of one rank. Ranks that
//     share an attention all count the same tokens.
//   - Layers without experts have counts, which are 0.
//   - The time in a name is when the file was written, not when passes ran, and passes have no times.
//   - Files of the mode per_token have the prompt (input_ids, positions). It is passed over.
package expertdump
