package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"golang.org/x/term"
)

// defaultEditor is what is left when no variable names one.
const defaultEditor = "vi"

// editorCommand is the editor as program and arguments, from CMCTL_EDITOR (or
// editor in the settings file), KUBE_EDITOR, VISUAL, EDITOR, else vi.
func (f *factory) editorCommand() ([]string, error) {
	source, line := "CMCTL_EDITOR", f.settings.GetString("editor")
	for _, name := range []string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		if line != "" {
			break
		}
		source, line = name, os.Getenv(name)
	}
	if line == "" {
		source, line = "the default editor", defaultEditor
	}
	words := []string{line}
	if _, err := exec.LookPath(line); err != nil { // not a program as a whole
		if words, err = command.Words(line); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("the editor %q can't be run (from %s): %s; set CMCTL_EDITOR to one that can", words[0], source, command.Unstarted(err))
	}
	return words, nil
}

// openEditor lets the person edit the file and returns when the editor ends.
func (f *factory) openEditor(path string) error {
	words, err := f.editorCommand()
	if err != nil {
		return err
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.In, f.Out, f.Err
	if !isTerminal(f.Out) {
		cmd.Stdout = f.Err // what goes into a file or a pipe is for results
	}
	err = f.interrupts.whileEditing(func() error {
		return command.RunInForeground(cmd, f.interrupts.before)
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
			return &editorError{&interruptedError{fmt.Errorf("the editor %q was ended with Ctrl-C; nothing was written", words[0])}}
		}
	}
	if err != nil {
		return &editorError{fmt.Errorf("the editor %q failed: %w; nothing was written", words[0], err)}
	}
	return nil
}

// editorError is what ends an edit, and those that would follow, because the
// editor said so.
type editorError struct{ err error }

func (e *editorError) Error() string { return e.err.Error() }
func (e *editorError) Unwrap() error { return e.err }

// interactive tells whether there is a person to ask.
func (f *factory) interactive() bool { return isTerminal(f.In) && isTerminal(f.Err) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
