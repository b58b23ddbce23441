package types

import (
	"errors"
	"fmt"

	"example.com/cmctl/pkg/types/content"
	"example.com/cmctl/pkg/types/lines"
)

// texts are the three versions of a value that can be merged by lines.
type texts struct {
	format           content.Format // empty: its structure is not known
	base, mine, live string
}

// textsOf takes values of data and of annotations that are texts on all sides.
// Labels are too short to have lines, and the record of the last apply is one
// program's, not a text of anybody's.
func textsOf(f Field, base, mine, live any) (t texts, ok bool) {
	if f.Section != dataSection.String() && f.Section != annotationSection.String() || f.Key == LastApplied {
		return texts{}, false
	}
	values := [3]string{}
	for i, v := range []any{base, mine, live} {
		if values[i], ok = v.(string); !ok {
			return texts{}, false
		}
	}
	return texts{content.FormatOf(f.Key), values[0], values[1], values[2]}, true
}

// merge puts the changes of both sides together. The error says why changes that
// fit together as lines must not be taken so; the lines then are all to be
// decided.
func (t texts) merge() (lines.Merged, error) {
	merged := lines.Merge(t.base, t.mine, t.live)
	if !merged.Clean() {
		return merged, nil
	}
	err := t.check(merged.Text())
	if err != nil {
		return lines.Contest(t.base, t.mine, t.live), err
	}
	return merged, nil
}

// check holds a clean merge against what both sides meant.
func (t texts) check(merged string) error {
	// Made again on its own result, a merge must find nothing to do. Otherwise
	// the lines can be read in more than one way, and a write whose answer was
	// lost could not be told from one that did not land.
	for _, side := range []string{t.mine, t.live} {
		if again := lines.Merge(t.base, side, merged); !again.Clean() || again.Text() != merged {
			return errors.New("both changes fit together in more than one way")
		}
	}
	return t.checkMeaning(merged)
}

// checkMeaning: what was sound on both sides must stay sound, and a sound result
// must say what each side that is sound changed.
func (t texts) checkMeaning(merged string) error {
	if t.format == "" {
		return nil
	}
	base, mine, live := t.parse(t.base), t.parse(t.mine), t.parse(t.live)
	result, err := content.Parse(t.format, merged)
	holds := true
	switch {
	case err != nil && mine != nil && live != nil:
		return fmt.Errorf("with both changes it would not be valid %s: %w", t.format, err)
	case err != nil || base == nil:
	case mine != nil && live != nil:
		holds = content.Holds(base, mine, live, result)
	case mine != nil:
		holds = content.HoldsOf(base, mine, result)
	case live != nil:
		holds = content.HoldsOf(base, live, result)
	}
	if !holds {
		return fmt.Errorf("with both changes it would not say as %s what each of them says", t.format)
	}
	return nil
}

// parse is what a text says; nil if it is not sound.
func (t texts) parse(text string) *content.Tree {
	tree, err := content.Parse(t.format, text)
	if err != nil {
		return nil
	}
	return tree
}

// take decides the regions that are in each other's way for one side; the rest
// has the changes of both. There is no such text if it would not be sound
// although both sides are, if it would lack a change of that side, or if it would
// be decided otherwise when asked for again on the result.
func (t texts) take(merged lines.Merged, side Side) (text string, ok bool) {
	text = side.of(merged)
	again, err := texts{t.format, t.base, t.mine, text}.merge()
	if err != nil || side.of(again) != text {
		return "", false
	}
	base, mine, live := t.parse(t.base), t.parse(t.mine), t.parse(t.live)
	if mine == nil || live == nil {
		return text, true
	}
	result, taken := t.parse(text), live
	if side == Mine {
		taken = mine
	}
	return text, result != nil && (base == nil || content.HoldsOf(base, taken, result))
}

// of is the text with one side's lines in the regions to decide.
func (s Side) of(merged lines.Merged) string {
	return merged.Resolve(func(r lines.Region) string {
		if s == Mine {
			return r.Mine
		}
		return r.Theirs
	})
}
