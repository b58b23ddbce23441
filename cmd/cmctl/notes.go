package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// progress tells on stderr what happens, attempt by attempt, once something
// unusual does: a write that goes through at first says nothing.
func (f *factory) progress(object interface{ Object() string }) func(retry.Event) {
	unusual := false
	lostNext := "; finding out whether the write landed"
	if _, unnamed := object.(*client.Unnamed); unnamed {
		lostNext = "" // it can't be found out
	}
	return func(e retry.Event) {
		attempt := fmt.Sprintf("attempt %d of %d", e.Attempt, e.Max)
		if e.Attempt == 0 {
			attempt = "nothing is sent yet"
		}
		routine := e.Attempt > toldAttempts && (e.Step == retry.Refused || e.Step == retry.Reread)
		switch e.Step {
		case retry.Refused:
			unusual = true
			if e.Attempt == toldAttempts+1 && e.Wait > 0 {
				f.note("%s: others keep writing %s; trying on without a word", attempt, object.Object())
			}
			if routine {
				return
			}
			f.note("%s: sent version %s of %s: refused, %s", attempt, e.Sent, object.Object(), serverWords(e.Err))
		case retry.Reread:
			if unusual && !routine {
				f.note("%s: read again, the current version is %s", attempt, e.Current)
			}
		case retry.Waiting:
			unusual = true
			f.note("%s: %s; trying again in %s", attempt, waitingFor(e.Err), e.Wait.Round(time.Millisecond))
		case retry.Lost:
			unusual = true
			f.note("%s: %s%s", attempt, serverWords(e.Err), lostNext)
		case retry.Resend:
			found := "it did not: the object is still as it was"
			if e.Sent == "" {
				found = "there is no such object"
			}
			f.note("%s: %s; sending it again", attempt, found)
		case retry.Settled:
			f.note("%s: it did", attempt)
		case retry.Gone:
			f.note("%s: the object is gone; whether by this write can't be told", attempt)
		case retry.Done:
			if unusual && e.Current != "" {
				f.note("%s: landed as version %s", attempt, e.Current)
			}
		}
	}
}

// toldAttempts is how many refused attempts are told one by one: dozens of them
// would bury what else is on the screen.
const toldAttempts = 5

// waitingFor says what was in the way of a request that is made again, without advice.
func waitingFor(err error) string {
	var broken *client.ConnectionError
	var several *client.ServersError
	switch {
	case errors.As(err, &several):
		return several.Causes()
	case !errors.As(err, &broken):
		return serverWords(err)
	case broken.Sent:
		return fmt.Sprintf("%s did not answer: %s", broken.Server, broken.Cause)
	}
	return fmt.Sprintf("cannot reach %s: %s", broken.Server, broken.Cause)
}

// serverWords is an answer on one line. Of our own server's Conflict only the
// part that names the versions is left.
func serverWords(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if apierrors.IsConflict(err) {
		if _, after, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "Operation cannot be fulfilled") {
			return after
		}
	}
	return text
}

// reapplied tells what a merge kept of others' work since the copy known
// before, and what it made again of ours.
func (f *factory) reapplied(known types.Document, m types.Merged, live types.Document) {
	before, _ := withoutRecord(known)
	for _, c := range types.Diff(before, live) {
		if slices.ContainsFunc(m.Theirs, func(t types.Change) bool { return t.Field == c.Field }) {
			f.note("  kept theirs:   %s: %s -> %s", c.Field, quote(c.From), quote(c.To))
		}
	}
	for _, c := range m.Already {
		f.note("  same on both:  %s: %s -> %s", c.Field, quote(c.From), quote(c.To))
	}
	for _, c := range m.Applied {
		f.note("  re-applied:    %s: %s -> %s", c.Field, quote(c.From), quote(c.To))
	}
}

// landedAndGone is true for a write that did land before the object was
// deleted by somebody else, and says so: it is done, as it would be had its
// answer not been lost.
func (f *factory) landedAndGone(err error) bool {
	var gone *retry.DeletedError
	if !errors.As(err, &gone) {
		return false
	}
	f.note("warning: %v", gone)
	return true
}

// unknownOutcome tells that nobody can say whether the write landed, whatever
// else the error holds.
func unknownOutcome(err error) bool { return errors.As(err, new(*retry.OutcomeUnknownError)) }
