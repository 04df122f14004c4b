// Package serverstate reads what SGLang's servers answer when they are asked how they are: /v1/loads, /server_info, and what
// failed to answer, as SGLang's incident bundle keeps them in a folder (incident_bundle_20260806_140305), or as a
// plain answer. Loads are samples of each DP rank; a scheduler that published nothing for long while it had requests is an
// instant, and so is what did not answer.
//
// # What is odd
//
//   - In a bundle an answer is wrapped: {"ok":..,"status":..,"path":..,"json":{..}}; an answer that curl saved is not.
//   - Since 2026-05-29, loads lie in shared memory: a scheduler that hangs still answers, with an old timestamp. The outer
//     one is when the answer was made; what is between them is how long it hangs.
//   - token_usage is that of the fullest pool, from 0 to 1.
//   - /server_info has api_key and admin_api_key in clear. They are not read.
//   - The time in the name of a bundle is local, without a zone; its files are not of one instant.
package serverstate
