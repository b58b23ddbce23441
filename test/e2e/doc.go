// Package e2e holds the tests that run both programs as their users do: real
// processes, real kill -9, many of them at once. The harness builds them once,
// with the race detector if the tests have it.
package e2e
