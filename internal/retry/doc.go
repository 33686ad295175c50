// Package retry gives the pauses between attempts: exponential, with jitter,
// bounded. It imports nothing of ours.
package retry
