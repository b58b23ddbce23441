package fieldmanager

import (
	"bytes"
	"sync"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/cmctl/pkg/types"
)

// ownedCacheSize bounds the cache of one resource, in bytes of memory, roughly.
const ownedCacheSize = 32 << 20

// owned are the fields of an entry, decoded. It is shared and never changes.
type owned struct {
	set    *fieldpath.Set
	fields *metav1.FieldsV1 // what set is encoded as
	plain  bool             // set has the fields of a ConfigMap, and no others
}

// cost is about how much memory it takes.
func (o *owned) cost() int64 { return 512 + 8*o.fields.GetRawReader().Size() }

// ownedCache remembers how the bytes of entries' fieldsV1 decode: most writes
// are to objects whose entries were just made, or are like many others'. It has
// two generations; when the young one is full the old one is forgotten.
type ownedCache struct {
	limit int64 // of one generation

	mu         sync.Mutex
	young, old map[string]*owned // by the bytes; guarded by mu
	size       int64             // cost of young; guarded by mu
}

func newOwnedCache(size int64) *ownedCache {
	return &ownedCache{limit: size / 2, young: map[string]*owned{}}
}

// get gives the decoded fields, or nil if they can't be decoded.
func (c *ownedCache) get(fields *metav1.FieldsV1) *owned {
	raw := fields.GetRawBytes()
	if o := c.lookup(raw); o != nil {
		return o
	}
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil
	}
	canonical, err := encode(&set)
	if err != nil {
		return nil
	}
	o := &owned{set: &set, fields: canonical, plain: plain(&set)}
	c.put(string(raw), o)
	return o
}

func (c *ownedCache) lookup(raw []byte) *owned {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.young[string(raw)]; o != nil {
		return o
	}
	o := c.old[string(raw)]
	if o != nil {
		c.putLocked(string(raw), o)
	}
	return o
}

func (c *ownedCache) put(raw string, o *owned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(raw, o)
}

func (c *ownedCache) putLocked(raw string, o *owned) {
	if _, ok := c.young[raw]; ok || o.cost() > c.limit {
		return
	}
	if c.size+o.cost() > c.limit {
		c.old, c.young, c.size = c.young, map[string]*owned{}, 0
	}
	c.young[raw] = o
	c.size += o.cost()
}

// owners decodes entries. It answers false if one is not of the usual form.
func (c *ownedCache) owners(entries []metav1.ManagedFieldsEntry) ([]owner, bool) {
	owners := make([]owner, 0, len(entries)+1)
	seen := make(map[identity]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		id := identity{manager: e.Manager, subresource: e.Subresource, operation: e.Operation}
		if !usual(e) || seen[id] {
			return nil, false
		}
		seen[id] = true
		o := c.get(e.FieldsV1)
		if o == nil || !o.plain {
			return nil, false
		}
		owners = append(owners, owner{identity: id, time: e.Time, set: o.set, fields: o.fields})
	}
	return owners, true
}

// usual says whether an entry has the form that the server itself gives it.
func usual(e *metav1.ManagedFieldsEntry) bool {
	return (e.Operation == metav1.ManagedFieldsOperationApply || e.Operation == metav1.ManagedFieldsOperationUpdate) &&
		e.APIVersion == types.APIVersion && e.FieldsType == "FieldsV1" && e.FieldsV1 != nil &&
		utf8.ValidString(e.Manager) && utf8.ValidString(e.Subresource)
}

// entries encodes owners, in order.
func (c *ownedCache) entries(owners []owner) ([]metav1.ManagedFieldsEntry, error) {
	if len(owners) == 0 {
		return nil, nil
	}
	entries := make([]metav1.ManagedFieldsEntry, 0, len(owners))
	for _, o := range owners {
		if o.fields == nil {
			fields, err := encode(o.set)
			if err != nil {
				return nil, err
			}
			o.fields = fields
			c.put(fields.GetRawString(), &owned{set: o.set, fields: fields, plain: true})
		}
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: o.manager, Operation: o.operation, APIVersion: types.APIVersion,
			Time: o.time, FieldsType: "FieldsV1", FieldsV1: o.fields, Subresource: o.subresource,
		})
	}
	sortEntries(entries)
	return entries, nil
}

func encode(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	return fields, nil
}
