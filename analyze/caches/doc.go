// Package caches finds caches of prompts that are emptied again and again, at equal intervals.
package caches
