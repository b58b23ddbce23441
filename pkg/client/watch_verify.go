package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errOtherStore says that the server does not have the state that is known.
var errOtherStore = errors.New("the server's objects are not those that were seen at this version: its store is another one, or was restored")

// metadataList asks for the objects of a list without their data, and takes the
// whole ones from a server that can't leave it out.
const metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// verify makes sure that the changes after the version that this watch has lead
// from what it knows to what there is. That version may be from another store:
// a server in memory that was restarted, a backup that was restored. Of a
// version that it has not reached a server says nothing, and of one that it
// reached on another way it replays changes of another history. Versions can't
// be compared by order, and needn't be: the server is asked for the collection
// exactly as it was at that version, and if that is what is known, uid by uid
// and version by version, then whatever follows is right.
func (f *follower) verify(ctx context.Context, s *stream) error {
	if f.version == "0" {
		// A store to which nothing was ever written. A watch from there begins
		// with all that there is by now.
		return nil
	}
	// Another of several servers may be another store.
	there := f.maps.client.at(s.exchange.peer).ConfigMaps(f.maps.namespace)
	theirs, err := there.versionsAt(ctx, f.ListOptions, f.version)
	if err != nil {
		if unknownVersion(err) {
			return &relistError{err}
		}
		return f.expired(err)
	}
	if len(theirs) != len(f.known) {
		return &relistError{errOtherStore}
	}
	for k, d := range f.known {
		if theirs[k] != (identity{d.UID(), d.ResourceVersion()}) {
			return &relistError{errOtherStore}
		}
	}
	return nil
}

// unknownVersion tells whether the server answered that it can't show the
// collection at that version. One that is not reached is an internal error on
// servers that pass their store's words on; the Timeout that others have for it, with a
// cause of its own, may pass.
func unknownVersion(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; {
	case code == http.StatusTooManyRequests, code == http.StatusUnauthorized, code == http.StatusForbidden:
		return false
	case code < 500:
		return true
	default:
		return code == http.StatusInternalServerError
	}
}

// identity is which object it is, in which version.
type identity struct{ uid, version string }

// versionsAt lists the collection exactly as it was at a version.
func (m *ConfigMaps) versionsAt(ctx context.Context, o ListOptions, version string) (map[objectKey]identity, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	k.accept = metadataList
	all := map[objectKey]identity{}
	for token := ""; ; {
		base := url.Values{}
		if token == "" {
			base.Set("resourceVersion", version)
			base.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		}
		k.query = o.query(base, token, pageSize)
		a, err := m.client.do(ctx, k)
		if err != nil {
			return nil, err
		}
		page := metav1.PartialObjectMetadataList{}
		if json.Unmarshal(a.body, &page) != nil || !strings.HasSuffix(page.Kind, "List") || token != "" && page.Continue == token {
			return nil, m.client.notTheObject(k, a)
		}
		for _, i := range page.Items {
			all[objectKey{i.Namespace, i.Name}] = identity{string(i.UID), i.ResourceVersion}
		}
		if token = page.Continue; token == "" {
			return all, nil
		}
	}
}
