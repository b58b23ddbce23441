package settings

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a settings file while it is edited. It keeps comments, and what
// it doesn't know. It may not be shared.
type Document struct {
	doc    yaml.Node
	folder string
}

// Parse takes the text of a settings file, whose paths are relative to a folder.
// It accepts settings that nobody knows, so that they can be taken out.
func Parse(text []byte, folder string) (*Document, error) {
	if _, err := parse(text, folder); err != nil {
		return nil, err
	}
	d := &Document{folder: folder}
	if err := yaml.Unmarshal(text, &d.doc); err != nil {
		return nil, plain(err)
	}
	if d.doc.Kind == 0 || d.root().Kind == yaml.ScalarNode { // nothing, or comments alone
		d.doc = yaml.Node{Kind: yaml.DocumentNode, HeadComment: strings.TrimSpace(string(text)),
			Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	return d, nil
}

func (d *Document) root() *yaml.Node { return d.doc.Content[0] }

// File is what the document says now.
func (d *Document) File() (*File, error) {
	text, err := d.Text()
	if err != nil {
		return nil, err
	}
	return parse(text, d.folder)
}

// Text is the document as YAML. What YAML would not give back as it is here is
// an error.
func (d *Document) Text() ([]byte, error) {
	var text bytes.Buffer
	if len(d.root().Content) == 0 { // an empty mapping would be written as {}
		if d.doc.HeadComment != "" {
			text.WriteString(d.doc.HeadComment + "\n")
		}
		return text.Bytes(), nil
	}
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := enc.Encode(&d.doc); err != nil {
		return nil, err
	}
	var want, got any
	if err := d.doc.Decode(&want); err != nil {
		return nil, plain(err)
	}
	if err := yaml.Unmarshal(text.Bytes(), &got); err != nil || !reflect.DeepEqual(want, got) {
		return nil, errors.New("the file can't be edited without changing more of it; change it by hand")
	}
	return text.Bytes(), nil
}

// Set gives a setting a value, in its place or at the end.
func (d *Document) Set(key string, value any) error { return set(d.root(), key, value) }

// Unset takes a setting out and tells whether it was there.
// The comment above it stays.
func (d *Document) Unset(key string) bool {
	i := index(d.root(), key)
	if i < 0 {
		return false
	}
	heirs, comment := d.root().Content[i+2:], &d.doc.FootComment
	if len(heirs) > 0 {
		comment = &heirs[0].HeadComment
	}
	*comment = strings.Trim(d.root().Content[i].HeadComment+"\n"+*comment, "\n")
	return unset(d.root(), key)
}

// SetContext makes a context, or gives the one of its name these fields and no
// others.
func (d *Document) SetContext(c Context) error {
	if err := c.check(); err != nil {
		return err
	}
	var fields yaml.Node
	if err := fields.Encode(c); err != nil {
		return err
	}
	list := find(d.root(), contextsKey)
	if list == nil || list.Kind != yaml.SequenceNode {
		unset(d.root(), contextsKey) // `contexts:` without any
		list = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if err := set(d.root(), contextsKey, list); err != nil {
			return err
		}
	}
	i := indexContext(list, c.Name)
	if i < 0 {
		list.Style = 0 // `contexts: []` would go on in brackets
		list.Content = append(list.Content, &fields)
		return nil
	}
	there := list.Content[i]
	for _, key := range keys(there) {
		if find(&fields, key) == nil {
			unset(there, key)
		}
	}
	for _, key := range keys(&fields) {
		if err := set(there, key, find(&fields, key)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteContext takes a context out and tells whether it was there.
func (d *Document) DeleteContext(name string) bool {
	list := find(d.root(), contextsKey)
	i := indexContext(list, name)
	if i < 0 {
		return false
	}
	list.Content = slices.Delete(list.Content, i, i+1)
	if len(list.Content) == 0 {
		unset(d.root(), contextsKey)
	}
	return true
}

// RenameContext gives a context another name, also as the current one. It
// tells whether it was there.
func (d *Document) RenameContext(from, to string) (bool, error) {
	list := find(d.root(), contextsKey)
	i := indexContext(list, from)
	if i < 0 {
		return false, nil
	}
	if indexContext(list, to) >= 0 {
		return true, fmt.Errorf("there is a context %q already", to)
	}
	if err := set(list.Content[i], "name", to); err != nil {
		return true, err
	}
	if current := find(d.root(), CurrentContext); current != nil && current.Value == from {
		return true, d.Set(CurrentContext, to)
	}
	return true, nil
}

// Mask puts words in the place of tokens.
func (d *Document) Mask(words string) error {
	holders := []*yaml.Node{d.root()}
	if list := find(d.root(), contextsKey); list != nil {
		holders = append(holders, list.Content...)
	}
	for _, h := range holders {
		if find(h, "token") == nil {
			continue
		}
		if err := set(h, "token", words); err != nil {
			return err
		}
	}
	return nil
}

// find is the value of a key of a mapping, nil if it isn't there.
func find(mapping *yaml.Node, key string) *yaml.Node {
	if i := index(mapping, key); i >= 0 {
		return mapping.Content[i+1]
	}
	return nil
}

// index is where a key of a mapping stands, -1 if nowhere.
func index(mapping *yaml.Node, key string) int {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func keys(mapping *yaml.Node) []string {
	var all []string
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		all = append(all, mapping.Content[i].Value)
	}
	return all
}

// set keeps the comments beside the value that was there.
func set(mapping *yaml.Node, key string, value any) error {
	made, ok := value.(*yaml.Node)
	if !ok {
		made = &yaml.Node{}
		if err := made.Encode(value); err != nil {
			return err
		}
	}
	if there := find(mapping, key); there != nil {
		made.HeadComment, made.LineComment, made.FootComment = there.HeadComment, there.LineComment, there.FootComment
		*there = *made
		return nil
	}
	mapping.Style = 0 // `{}` would go on in braces
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, made)
	return nil
}

func unset(mapping *yaml.Node, key string) bool {
	i := index(mapping, key)
	if i < 0 {
		return false
	}
	mapping.Content = slices.Delete(mapping.Content, i, i+2)
	return true
}

// indexContext is where the context of that name stands, -1 if nowhere.
func indexContext(list *yaml.Node, name string) int {
	if list == nil || list.Kind != yaml.SequenceNode {
		return -1
	}
	return slices.IndexFunc(list.Content, func(c *yaml.Node) bool {
		n := find(c, "name")
		return n != nil && n.Value == name
	})
}
