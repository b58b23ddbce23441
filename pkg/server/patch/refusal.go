package patch

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/cmctl/pkg/types"
)

// whole gives a Status of apimachinery the type that it is sent with.
func whole(err *apierrors.StatusError) *types.StatusError {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return err
}

// UnsupportedType refuses a PATCH whose Content-Type is none of a patch.
func UnsupportedType() error {
	return whole(&apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Message: "415: Unsupported Media Type",
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Details: &metav1.StatusDetails{},
		Code:    http.StatusUnsupportedMediaType,
	}})
}

// UIDOfNothing refuses to create an object whose configuration names a uid: it
// was meant for one that is gone.
func UIDOfNothing(res *types.Resource, name string, uid ktypes.UID) error {
	return whole(apierrors.NewConflict(res.GroupResource(), name, fmt.Errorf(
		"uid mismatch: the provided object specified uid %s, and no existing object was found", uid)))
}

// undecodable refuses a patch whose JSON has another shape than a patch has.
func undecodable(why string) error { return types.BadRequest("error decoding patch: " + why) }

// typeless refuses a patch that takes away what the object is.
func typeless(res *types.Resource) error {
	return types.BadRequest(fmt.Sprintf("the patch removes apiVersion, and what is left is no %s", res.Kind))
}

// invalid refuses a patch that makes no object; shown is what it made.
func invalid(shown string, why error) error {
	return whole(apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), shown, why.Error()),
	}))
}

// inapplicable refuses a patch that does not fit the object: a test that fails,
// a path that is not there.
func inapplicable(err error) error {
	return whole(apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false))
}

// tooLarge refuses a patch that would take too long.
func tooLarge(why string) error { return whole(apierrors.NewRequestEntityTooLargeError(why)) }
