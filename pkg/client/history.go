package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// ErrNoHistory says that the server does not offer the history of an object, as a
// Kubernetes API server has none. One that does not let the caller read it says
// Forbidden instead.
var ErrNoHistory = errors.New("the server offers no history of ConfigMaps")

// LacksHistory tells whether there is no history for the caller: the server keeps
// none, or does not let them read it.
func LacksHistory(err error) bool { return errors.Is(err, ErrNoHistory) || apierrors.IsForbidden(err) }

// History lists the versions of one ConfigMap that the server still has, newest
// first, also of one that has been deleted. It returns NotFound if there is
// nothing of that name, and ErrNoHistory if the server keeps none.
func (m *ConfigMaps) History(ctx context.Context, name string) (*types.HistoryList, error) {
	k, err := m.historyOf(name)
	if err != nil {
		return nil, err
	}
	a, err := m.client.do(ctx, k)
	if err != nil {
		return nil, historyError(err, name)
	}
	list := &types.HistoryList{}
	if json.Unmarshal(a.body, list) != nil || list.Kind != types.HistoryKind ||
		list.Metadata.Name != name || list.Metadata.Namespace != m.namespace {
		return nil, m.client.notTheObject(k, a)
	}
	return list, nil
}

// At reads one ConfigMap whole as it was at that version of it. It returns
// NotFound if it never had that version, Expired if the version is no longer
// kept, and ErrNoHistory if the server keeps none.
func (m *ConfigMaps) At(ctx context.Context, name, resourceVersion string) (types.Document, error) {
	k, err := m.historyOf(name)
	if err != nil {
		return nil, err
	}
	if resourceVersion == "" {
		return nil, types.BadVersion("resourceVersion", resourceVersion)
	}
	k.query = url.Values{"resourceVersion": {resourceVersion}}
	k.object = fmt.Sprintf("version %s of %s", resourceVersion, m.describe(name))
	doc, err := m.object(ctx, k, name)
	if err != nil {
		return nil, historyError(err, name)
	}
	return doc, nil
}

func (m *ConfigMaps) historyOf(name string) (call, error) {
	k, err := m.named(http.MethodGet, name)
	if err != nil {
		return call{}, err
	}
	k.path = append(k.path, "history")
	k.object = "the history of " + k.object
	k.limit = listLimit
	return k, nil
}

// historyError tells apart that there is nothing of this object from that there
// is no history at all. The former is a NotFound that names the object; a
// server that does not know the path answers one that names nothing.
func historyError(err error, name string) error {
	var unexpected *UnexpectedError
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &unexpected):
		if unexpected.Code == http.StatusNotFound || unexpected.Code == http.StatusMethodNotAllowed {
			return noHistory(err)
		}
	case errors.As(err, &status):
		switch status.ErrStatus.Reason {
		case metav1.StatusReasonNotFound:
			if d := status.ErrStatus.Details; d == nil || d.Name != name {
				return noHistory(err)
			}
		case metav1.StatusReasonMethodNotAllowed:
			return noHistory(err)
		}
	}
	return err
}

func noHistory(cause error) error { return &noHistoryError{cause: cause} }

// noHistoryError is ErrNoHistory with the answer that told so. It does not
// unwrap to that answer: its NotFound is not about the object.
type noHistoryError struct{ cause error }

func (e *noHistoryError) Error() string {
	cause := e.cause.Error()
	// Its advice is for those who meet the wrong server.
	if u := (*UnexpectedError)(nil); errors.As(e.cause, &u) {
		cause = fmt.Sprintf("%s answers %d %s to a request for %s", u.server, u.Code, http.StatusText(u.Code), u.object)
	}
	return ErrNoHistory.Error() + ": " + cause
}

func (e *noHistoryError) Is(target error) bool { return target == ErrNoHistory }
