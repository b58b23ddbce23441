//go:build unix

package filter

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the command into a process group of its own, so that its end
// is also that of what it started.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of the group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an empty group is what is wanted
	}
}
