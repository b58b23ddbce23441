package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// hookFlags say which program is told of a change, and how.
type hookFlags struct {
	command string
	signal  string
	pid     int
	pidFile string
}

func (h *hookFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&h.command, "exec", "", "`COMMAND` to run after a change of the files; it finds what changed in CMCTL_ variables")
	flags.StringVar(&h.signal, "signal", "", "`SIGNAL` to send after a change of the files, such as HUP, to the process of --pid or --pid-file")
	flags.IntVar(&h.pid, "pid", 0, "process that gets the --signal")
	flags.StringVar(&h.pidFile, "pid-file", "", "`FILE` with the id of the process that gets the --signal, read again each time")
}

func (h *hookFlags) given() bool {
	return h.command != "" || h.signal != "" || h.pid != 0 || h.pidFile != ""
}

func (h *hookFlags) validate() error {
	if h.command != "" {
		if _, err := command.Words(h.command); err != nil {
			return usagef("--exec: %v", err)
		}
	}
	switch {
	case h.signal == "" && (h.pid != 0 || h.pidFile != ""):
		return usagef("--pid and --pid-file say who gets the --signal; name the signal too")
	case h.signal != "" && (h.pid != 0) == (h.pidFile != ""):
		return usagef("--signal goes to the process that --pid or --pid-file names; give one of them")
	case h.signal != "" && signalNumber(h.signal) == 0:
		return usagef("--signal: %q is no signal; give one such as HUP or USR1", h.signal)
	case h.pid < 0:
		return usagef("--pid=%d is no process", h.pid)
	}
	return nil
}

func signalNumber(name string) syscall.Signal {
	return unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
}

// hookError says that the files are written, but a program was not told.
type hookError struct{ err error }

func (e *hookError) Error() string {
	return "the files are written, but " + e.err.Error() + "; the next sync tries again"
}

func (e *hookError) Unwrap() error { return e.err }

// changeOf describes a change in variables for a hook's command.
func changeOf(conn *connection, doc types.Document, folder string, keys []string) []string {
	return []string{
		"CMCTL_SYNC_NAME=" + doc.Name(),
		"CMCTL_SYNC_NAMESPACE=" + conn.namespace,
		"CMCTL_SYNC_DIR=" + folder,
		"CMCTL_SYNC_RESOURCE_VERSION=" + doc.ResourceVersion(),
		"CMCTL_SYNC_CHANGED_KEYS=" + strings.Join(keys, " "),
	}
}

// run tells the program of a change.
func (h *hookFlags) run(ctx context.Context, f *factory, change []string) error {
	if h.command != "" {
		if err := h.runCommand(ctx, f, change); err != nil {
			return &hookError{err}
		}
	}
	if h.signal != "" {
		if err := h.sendSignal(); err != nil {
			return &hookError{err}
		}
	}
	return nil
}

func (h *hookFlags) runCommand(ctx context.Context, f *factory, change []string) error {
	words, err := command.Words(h.command)
	if err != nil {
		return err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), change...)
	// stdout is for our own results.
	cmd.Stdout, cmd.Stderr = f.Err, f.Err
	err = command.Run(ctx, cmd, syscall.SIGTERM, f.interrupts.before)
	switch {
	case errors.As(err, new(*command.EndedError)):
		return fmt.Errorf("the command %w", err)
	case err != nil:
		return fmt.Errorf("the command %q failed: %w", h.command, err)
	}
	return nil
}

func (h *hookFlags) sendSignal() error {
	pid := h.pid
	if h.pidFile != "" {
		text, err := os.ReadFile(h.pidFile)
		if err != nil {
			return fmt.Errorf("nobody was sent %s: %w", h.signal, err)
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || pid < 1 {
			return fmt.Errorf("nobody was sent %s: %s holds no process id", h.signal, h.pidFile)
		}
	}
	if err := syscall.Kill(pid, signalNumber(h.signal)); err != nil {
		return fmt.Errorf("process %d was not sent %s: %w", pid, h.signal, err)
	}
	return nil
}
