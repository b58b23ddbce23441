package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"mvdan.cc/sh/v3/shell"
)

// defaultEditor is what is left when no variable names one.
const defaultEditor = "vi"

// editorCommand is the editor as program and arguments, from CMCTL_EDITOR (or
// editor in the settings file), KUBE_EDITOR, VISUAL, EDITOR, else vi.
func (f *factory) editorCommand() ([]string, error) {
	source, command := "CMCTL_EDITOR", f.settings.GetString("editor")
	for _, name := range []string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		if command != "" {
			break
		}
		source, command = name, os.Getenv(name)
	}
	if command == "" {
		source, command = "the default editor", defaultEditor
	}
	words := []string{command}
	if _, err := exec.LookPath(command); err != nil {
		// Not a program as a whole: words by the shell's rules, but no shell
		// that would run what a file name or a variable smuggles in.
		words, err = shell.Fields(command, keepUnset)
		if err != nil || len(words) == 0 {
			return nil, fmt.Errorf("%s=%q is not a command: %w", source, command, errors.Join(err))
		}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("the editor %q can't be run (from %s): %w; set CMCTL_EDITOR to one that can", words[0], source, errors.Unwrap(err))
	}
	return words, nil
}

// keepUnset leaves $0 and its like in place: they are meant for a shell that
// the editor command itself may start.
func keepUnset(name string) string {
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return "$" + name
}

// openEditor lets the person edit the file and returns when the editor ends.
func (f *factory) openEditor(path string) error {
	words, err := f.editorCommand()
	if err != nil {
		return err
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.In, f.Out, f.Err
	err = f.interrupts.whileEditing(cmd.Run)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
			return &interruptedError{fmt.Errorf("the editor %q was ended with Ctrl-C; nothing was written", words[0])}
		}
	}
	if err != nil {
		return fmt.Errorf("the editor %q failed: %w", words[0], err)
	}
	return nil
}
