package client

import (
	"context"

	"example.com/cmctl/pkg/types"
)

// peekLimit is how large an answer to Peek may be, in bytes.
const peekLimit = 16 << 20

// Peek reads as many of the collection as limit says, in one request. all tells
// whether that is the whole of it. An answer that would be larger than 16 MiB is
// an error: Peek is for what saves many small requests and is not needed.
func (m *ConfigMaps) Peek(ctx context.Context, limit int) (items []types.Document, all bool, err error) {
	k, err := m.collection()
	if err != nil {
		return nil, false, err
	}
	k.limit = peekLimit
	k.query = ListOptions{}.query(nil, "", limit)
	a, err := m.client.do(ctx, k)
	if err != nil {
		return nil, false, err
	}
	page, err := types.ParseDocument(a.body)
	if err != nil {
		return nil, false, m.client.notTheObject(k, a)
	}
	items, ok := listItems(page)
	if !ok {
		return nil, false, m.client.notTheObject(k, a)
	}
	return items, continueToken(page) == "", nil
}
