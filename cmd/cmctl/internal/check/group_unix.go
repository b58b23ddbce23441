//go:build unix

package check

import (
	"os/exec"
	"syscall"
)

// ownGroup has the program, and all that it starts, ended together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
