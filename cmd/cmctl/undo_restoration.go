package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
)

// restoration brings back an object that was deleted, as it was in its last version or
// in the one that was named. It is a create: what somebody made of that name meanwhile
// stays.
func (u *undo) restoration(ctx context.Context, items []types.HistoryEntry) (change, error) {
	if err := u.holdsOfDeleted(items[0]); err != nil {
		return change{}, err
	}
	at, err := u.lifeOf(ctx, items)
	if err != nil {
		return change{}, err
	}
	version := items[at].ResourceVersion
	doc, err := u.past.version(ctx, version)
	if err != nil {
		return change{}, err
	}
	made := doc.Clone()
	made.DropServerFields()
	u.note("brings back version %s, %s by %s; deleted by %s", version, items[at].Verb, whoAndWhen(items[at]), whoAndWhen(items[0]))
	return change{
		name: u.past.name,
		make: func(context.Context) (types.Document, error) {
			u.on, u.next = nil, made
			return made.Clone(), nil
		},
		edit: func(_ context.Context, found types.Document) (types.Document, error) {
			return nil, u.conn.conflict(u.conn.namespace, u.past.name,
				fmt.Sprintf("one of this name was made meanwhile (version %s, uid %s), and stays; nothing was written", found.ResourceVersion(), found.UID()),
				fmt.Sprintf("take from the old one what you need: 'cmctl get %s --version %s -o yaml%s'", u.past.name, version, u.conn.where))
		},
		word: func(_, _ types.Document) string { return "restored" },
		// What is found after a lost answer may be this one, or somebody else's.
		computed: true,
	}, nil
}

// holdsOfDeleted refuses what does not meet the condition that the flags set. Of an
// object that is gone only the history can tell that. The create asks for no more than
// that there is none: it can overwrite nothing, whatever was made and deleted since.
func (u *undo) holdsOfDeleted(last types.HistoryEntry) error {
	unmet := ""
	switch given := u.guard; {
	case given.uid != "" && given.uid != string(last.UID):
		unmet = fmt.Sprintf("the one that was deleted has the uid %s, not %s", last.UID, given.uid)
	case given.resourceVersion != "" && given.resourceVersion != last.ResourceVersion:
		unmet = fmt.Sprintf("it is not at version %s any more, but was deleted by %s (version %s)", given.resourceVersion, whoAndWhen(last), last.ResourceVersion)
	}
	u.guard = guardFlags{}
	if unmet == "" {
		return nil
	}
	return u.conn.conflict(u.conn.namespace, u.past.name, unmet+"; nothing was written",
		fmt.Sprintf("look at what was with 'cmctl history %s -o wide%s'; 'cmctl undo %[1]s%[2]s' without the condition brings it back", u.past.name, u.conn.where))
}

// lifeOf is the place in the history of the version that is to be brought back.
func (u *undo) lifeOf(ctx context.Context, items []types.HistoryEntry) (int, error) {
	given := u.to
	if u.change == items[0].ResourceVersion {
		given = "" // what that version did is the deletion
	} else if u.change != "" {
		return 0, &hintedError{errors.New("it is deleted, so that single changes can't be taken back; nothing was written"),
			fmt.Sprintf("bring it back first: 'cmctl undo %s%s'", u.past.name, u.conn.where)}
	}
	at := 1
	if given != "" {
		at = place(items, given)
	}
	switch {
	case at > 0 && at < len(items) && !items[at].Deleted:
		return at, nil
	case given == "":
		return 0, &output.MissingError{Message: "it is deleted, and none of its versions is kept any more"}
	}
	if _, err := u.past.version(ctx, given); err != nil {
		return 0, err // which says what that version is
	}
	return 0, fmt.Errorf("the history did not list version %s; try again", given)
}
