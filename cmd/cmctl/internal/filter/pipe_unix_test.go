//go:build unix

package filter_test

import (
	"os"
	"syscall"
)

// makePipe makes a named pipe; the function returned waits for its writer.
func makePipe(path string) (func() (*os.File, error), error) {
	return open(path), syscall.Mkfifo(path, 0o600)
}
