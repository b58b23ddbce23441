package server

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// tokenVersion marks continue tokens as Kubernetes marks its own.
const tokenVersion = "meta.k8s.io/v1"

// token is what a continue parameter holds, in base64. Clients pass it back
// as it is.
type token struct {
	Version  string         `json:"v"`
	Revision store.Revision `json:"rv"`    // the first page's state; -1: the current one
	Start    string         `json:"start"` // the first key that is wanted, without the prefix
}

// continueToken goes on after a key, in the same state.
func continueToken(at store.Revision, prefix, after store.Key) string {
	start := strings.TrimPrefix(string(after), string(prefix)) + "\x00"
	// A struct of strings and numbers always marshals.
	text, _ := json.Marshal(token{Version: tokenVersion, Revision: at, Start: start})
	return base64.RawURLEncoding.EncodeToString(text)
}

// resume takes up the place that a token names.
func (l *listing) resume(text string) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return types.BadRequest("continue key is not valid: it was not given by this server, or was changed")
	}
	var t token
	if json.Unmarshal(raw, &t) != nil || t.Version != tokenVersion || t.Start == "" || t.Revision == 0 || t.Revision < -1 {
		return types.BadRequest("continue key is not valid: it was not given by this server, or was changed")
	}
	l.paged = true
	l.after = l.prefix() + store.Key(strings.TrimSuffix(t.Start, "\x00"))
	l.at = max(t.Revision, 0)
	return nil
}

// pageExpired says that the first page's state is gone, with a token that goes
// on in the current one.
func (s *Server) pageExpired(l listing) error {
	err := types.Expired("The provided continue parameter is too old to display a consistent list result. You can start " +
		"a new list without the continue parameter, or use the continue token in this response to retrieve the remainder " +
		"of the results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = continueToken(-1, l.prefix(), l.after)
	return err
}

// rowOf is what a table shows of a record, where the record tells so without its
// value.
func rowOf(res *types.Resource, rec store.Record) render.Row {
	if rec.Brief.IsZero() {
		return render.Row{}
	}
	_, name := splitKey(res, rec.Key)
	return render.Row{Name: name, Keys: rec.Brief.Keys, Created: rec.Brief.Created}
}

// answer is the list.
func (f found) answer() answer {
	list := render.List{
		Resource:  f.resource,
		Version:   f.revision.String(),
		Continue:  f.next,
		Remaining: max(f.remaining, 0),
		Items:     make([]render.Item, len(f.records)),
	}
	for i, rec := range f.records {
		list.Items[i] = render.Item{Encoded: encoded(f.resource, rec), Version: rec.Revision.String(), Row: rowOf(f.resource, rec)}
	}
	return answer{body: func(r *render.Renderer, form render.Form) ([]byte, error) { return r.List(form, list) }}
}
