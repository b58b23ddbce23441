// Package crash holds the crash harness: writers load a server, the server is
// stopped at once in the middle of it, and what it has when it comes back is held
// against everything that it had acknowledged. There are two halves, because neither
// can do without the other:
//
//   - kill -9 of a real cmserver process, some of the writers being cmctl processes.
//     What a process wrote stays with the kernel, so this can't show a missing sync.
//   - A power cut under the same server in this process: all that was synced is left,
//     and a random part of what was not. A disk whose syncs do nothing shows that this
//     half sees losses.
//
// Each run prints its seed. By hand:
//
//	go test ./test/crash -v                      # a minute or so
//	CRASH_FOR=30m go test ./test/crash -v -timeout 0
//	CRASH_SEED=123 go test ./test/crash -v
//
// The seed decides what is written and when it crashes, counted in acknowledged
// writes; how goroutines and processes interleave is the machine's.
package crash
