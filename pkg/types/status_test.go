package types_test

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/cmctl/pkg/types"
)

func TestEveryRefusalIsAStatus(t *testing.T) {
	invalid := field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name is required")}
	for _, c := range []struct {
		name    string
		err     *types.StatusError
		code    int32
		reason  string
		is      func(error) bool // apimachinery's predicate
		message string           // part of it
	}{
		{"not found", types.ConfigMaps.NotFound("flags"), 404, "NotFound", apierrors.IsNotFound, `configmaps "flags" not found`},
		{"version not found", types.ConfigMaps.VersionNotFound("flags", "7"), 404, "NotFound", apierrors.IsNotFound, "no resourceVersion 7"},
		{"version deleted", types.ConfigMaps.VersionDeleted("flags", "7"), 404, "NotFound", apierrors.IsNotFound, "deleted in resourceVersion 7"},
		{"exists", types.ConfigMaps.AlreadyExists("flags"), 409, "AlreadyExists", apierrors.IsAlreadyExists, `configmaps "flags" already exists`},
		{"being deleted", types.ConfigMaps.BeingDeleted("flags"), 409, "AlreadyExists", apierrors.IsAlreadyExists, "object is being deleted: configmaps"},
		{"stale version", types.ConfigMaps.VersionConflict("flags", "1", "2"), 409, "Conflict", apierrors.IsConflict,
			`Operation cannot be fulfilled on configmaps "flags": the object has been modified; sent resourceVersion 1, current 2`},
		{"other uid", types.ConfigMaps.UIDMismatch("flags", "u1", "u2"), 409, "Conflict", apierrors.IsConflict, "UID is immutable"},
		{"uid precondition", types.ConfigMaps.UIDPrecondition("flags", "u1", "u2"), 409, "Conflict", apierrors.IsConflict, `on ConfigMap "flags"`},
		{"version precondition", types.ConfigMaps.VersionPrecondition("flags", "1", "2"), 409, "Conflict", apierrors.IsConflict, "(1) does not match"},
		{"create with version", types.CreateSetsVersion(), 400, "BadRequest", apierrors.IsBadRequest, "create cannot set resourceVersion"},
		{"update without version", types.UpdateNeedsVersion(), 400, "BadRequest", apierrors.IsBadRequest, "update requires metadata.resourceVersion"},
		{"name mismatch", types.NameMismatch(), 400, "BadRequest", apierrors.IsBadRequest, "metadata.name does not match the URL"},
		{"namespace mismatch", types.NamespaceMismatch(), 400, "BadRequest", apierrors.IsBadRequest, "namespace of the provided object"},
		{"bad version", types.BadVersion("metadata.resourceVersion", "abc"), 400, "BadRequest", apierrors.IsBadRequest, `"abc"`},
		{"strict", types.StrictDecoding("ConfigMap", []string{`unknown field "x"`}), 400, "BadRequest", apierrors.IsBadRequest, "strict decoding error"},
		{"invalid", types.ConfigMaps.Invalid("flags", invalid), 422, "Invalid", apierrors.IsInvalid, `ConfigMap "flags" is invalid`},
		{"invalid options", types.InvalidOptions("CreateOptions", invalid), 422, "Invalid", apierrors.IsInvalid, "CreateOptions.meta.k8s.io"},
		{"method", types.MethodNotAllowed(""), 405, "MethodNotAllowed", apierrors.IsMethodNotSupported, "does not allow this method"},
		{"path", types.UnknownPath(), 404, "NotFound", apierrors.IsNotFound, "could not find the requested resource"},
		{"accept", types.NotAcceptable("application/json"), 406, "NotAcceptable", apierrors.IsNotAcceptable, "application/json"},
		{"accept form", types.NotAcceptableForm("application/json"), 406, "NotAcceptable", apierrors.IsNotAcceptable, "application/json"},
		{"media type", types.UnsupportedMediaType("application/json"), 415, "UnsupportedMediaType", apierrors.IsUnsupportedMediaType, "application/json"},
		{"too large", types.RequestTooLarge(5), 413, "RequestEntityTooLarge", apierrors.IsRequestEntityTooLargeError, "limit is 5"},
		{"too many", types.TooManyRequests("busy", 1), 429, "TooManyRequests", apierrors.IsTooManyRequests, "busy"},
		{"unavailable", types.Unavailable("down", 1), 503, "ServiceUnavailable", apierrors.IsServiceUnavailable, "down"},
		{"read only", types.StoreReadOnly(), 503, "ServiceUnavailable", apierrors.IsServiceUnavailable, "nothing was stored"},
		{"store failed", types.StoreFailed(), 500, "InternalError", apierrors.IsInternalError, "is open until"},
		{"store full", types.StoreFull(), 507, "InsufficientStorage", func(error) bool { return true }, "nothing was stored"},
		{"cluster full", types.ClusterFull(), 507, "InsufficientStorage", func(error) bool { return true }, "nothing was stored"},
		{"cluster away", types.StoreUnreachable(), 503, "ServiceUnavailable", apierrors.IsServiceUnavailable, "nothing was stored"},
		{"too large for the store", types.StoreTooSmall(), 413, "RequestEntityTooLarge", apierrors.IsRequestEntityTooLargeError, "nothing was stored"},
		{"store stalled", types.StoreStalled(), 503, "ServiceUnavailable", apierrors.IsServiceUnavailable, "nothing was stored"},
		{"store timeout", types.StoreTimeout(), 504, "Timeout", apierrors.IsTimeout, "is open"},
		{"internal", types.Internal("r-1"), 500, "InternalError", apierrors.IsInternalError, "r-1"},
		{"timeout", types.Timeout("slow"), 504, "Timeout", apierrors.IsTimeout, "slow"},
		{"future", types.FutureVersion("9", "2"), 504, "Timeout", apierrors.IsTimeout, "Too large resource version: 9, current: 2"},
		{"expired", types.Expired("gone"), 410, "Expired", apierrors.IsResourceExpired, "gone"},
		{"version expired", types.ConfigMaps.VersionExpired("flags", "4", []string{"9", "2"}), 410, "Expired", apierrors.IsResourceExpired, "may have taken it; kept of it are 9, 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.err.ErrStatus
			if s.Code != c.code || string(s.Reason) != c.reason || s.Status != "Failure" {
				t.Errorf("got %d %s %s, want %d %s Failure", s.Code, s.Reason, s.Status, c.code, c.reason)
			}
			if !c.is(c.err) {
				t.Error("apimachinery's predicate does not recognise it")
			}
			if !strings.Contains(s.Message, c.message) {
				t.Errorf("message %q does not contain %q", s.Message, c.message)
			}
			body, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{`"kind":"Status"`, `"apiVersion":"v1"`, `"metadata":{}`} {
				if !strings.Contains(string(body), part) {
					t.Errorf("%s lacks %s", body, part)
				}
			}
		})
	}
}

func TestDeletedNamesTheObject(t *testing.T) {
	s := types.ConfigMaps.Deleted("flags", "u1")
	if s.Status != "Success" || s.Details.Name != "flags" || s.Details.Kind != "configmaps" || s.Details.UID != "u1" {
		t.Errorf("got %+v", s)
	}
}
