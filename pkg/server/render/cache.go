package render

import (
	"container/list"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"example.com/cmctl/pkg/types"
)

// entryOverhead is about what an entry takes beside its bytes.
const entryOverhead = 300

// cache keeps the encodings that were used last. Whoever asks for one that is
// being made waits for it, so that each is made once.
type cache struct {
	limit int // bytes

	mu      sync.Mutex // guards what follows
	size    int
	entries map[cacheKey]*list.Element
	order   *list.List // of *cacheEntry, the last used in front
}

// cacheKey names an encoding. The version alone does not say which object it
// is, nor which content: a dry run has that of the object before it, and an
// object that leaves a selector has its old content with the new version. So
// the stored bytes' hash, with a random seed, stands for the content.
type cacheKey struct {
	resource *types.Resource
	version  string
	content  uint64
	partial  bool // metadata only

	event watch.EventType // of a whole event; empty: the message alone
	form  Form            // of a whole event
}

func keyOf(item Item, partial bool) cacheKey {
	return cacheKey{
		resource: item.Encoded.Resource,
		version:  item.Version,
		content:  maphash.Bytes(contentSeed, item.Encoded.Value),
		partial:  partial,
	}
}

type cacheEntry struct {
	key     cacheKey
	encode  func() ([]byte, error) // runs once
	counted int                    // what it adds to the size
}

var contentSeed = maphash.MakeSeed()

func newCache(limit int) *cache {
	return &cache{limit: max(limit, 0), entries: map[cacheKey]*list.Element{}, order: list.New()}
}

// get gives an encoding, made by encode if it is not there. Nobody may change
// what it returns.
func (c *cache) get(key cacheKey, encode func() ([]byte, error)) ([]byte, error) {
	element := c.element(key, encode)
	value, err := element.Value.(*cacheEntry).encode()
	c.settle(element, len(value), err)
	return value, err
}

// element finds an entry, or adds one whose size is not known yet.
func (c *cache) element(key cacheKey, encode func() ([]byte, error)) *list.Element {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.entries[key]; found != nil {
		c.order.MoveToFront(found)
		return found
	}
	added := c.order.PushFront(&cacheEntry{key: key, encode: sync.OnceValues(encode)})
	c.entries[key] = added
	return added
}

// settle counts an entry that was just made, and drops what no longer fits.
func (c *cache) settle(element *list.Element, length int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := element.Value.(*cacheEntry)
	if entry.counted > 0 || c.entries[entry.key] != element {
		return // done by another, or already dropped
	}
	entry.counted = length + entryOverhead
	c.size += entry.counted
	if err != nil {
		c.dropLocked(element)
	}
	for c.size > c.limit {
		c.dropLocked(c.order.Back())
	}
}

func (c *cache) dropLocked(element *list.Element) {
	entry := element.Value.(*cacheEntry)
	c.order.Remove(element)
	delete(c.entries, entry.key)
	c.size -= entry.counted
}
