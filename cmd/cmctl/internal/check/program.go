package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode"

	"example.com/cmctl/cmd/cmctl/internal/command"
)

// placeholder stands for the file with the value.
const placeholder = "{}"

// run has a command check a value. cause is empty if there is nothing to say
// against it.
func (c *Checks) run(ctx context.Context, line, key, text string) (cause string) {
	words, err := command.Words(line)
	if err != nil {
		return fmt.Sprintf("the check %q can't be run: %v", line, err)
	}
	words, remove, err := withFile(words, key, text)
	if err != nil {
		return fmt.Sprintf("the check %q can't be run: %v", words[0], err)
	}
	defer remove()
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := c.execute(limited, words, text)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("the check %q was interrupted", words[0])
	case limited.Err() != nil:
		return fmt.Sprintf("the check %q took longer than %s and was ended", words[0], timeout)
	case errors.As(err, &exit) && out != "":
		return fmt.Sprintf("%s (the check %q)", out, words[0])
	case errors.As(err, &exit):
		return fmt.Sprintf("the check %q failed and said nothing: %v", words[0], err)
	case err != nil:
		return fmt.Sprintf("the check %q can't be run: %s", words[0], command.Unstarted(err))
	}
	return ""
}

// withFile puts the name of a file that holds the value in the placeholder's
// stead, if the words have one.
func withFile(words []string, key, text string) (_ []string, remove func(), err error) {
	if !strings.Contains(strings.Join(words[1:], " "), placeholder) {
		return words, func() {}, nil
	}
	file, err := os.CreateTemp("", "cmctl-check-*"+path.Ext(key)) // for the person alone
	if err != nil {
		return words, nil, err
	}
	remove = func() { os.Remove(file.Name()) } // a file that is left over does no harm
	if _, err = file.WriteString(text); err != nil {
		file.Close() // the first error counts
		remove()
		return words, nil, err
	}
	if err = file.Close(); err != nil {
		remove()
		return words, nil, err
	}
	named := []string{words[0]}
	for _, word := range words[1:] {
		named = append(named, strings.ReplaceAll(word, placeholder, file.Name()))
	}
	return named, remove, nil
}

// graceful is how long the output of a program that has ended is waited for:
// what it started may hold it open.
const graceful = time.Second

// execute runs a program, and ends it at once when ctx is done: a check changes
// nothing that could be left half done.
func (c *Checks) execute(ctx context.Context, words []string, input string) (out string, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = strings.NewReader(input)
	excerpt := &excerpt{}
	cmd.Stdout, cmd.Stderr = excerpt, excerpt
	cmd.WaitDelay = graceful
	err = command.Run(ctx, cmd, syscall.SIGKILL, c.Running)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; what it left running is no answer
	}
	return excerpt.String(), err
}

// How much of a program's output is told.
const (
	maxBytes = 2048
	maxLines = 5
)

// excerpt keeps the beginning of what is written to it.
type excerpt struct{ kept []byte }

func (e *excerpt) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p[:min(len(p), maxBytes-len(e.kept))]...)
	return len(p), nil
}

// String is the first lines, without what a terminal would obey.
func (e *excerpt) String() string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(e.kept), ""))
	found := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(found[:min(len(found), maxLines)], "\n")
}
