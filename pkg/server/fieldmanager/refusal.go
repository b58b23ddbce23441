package fieldmanager

import (
	"cmp"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// refusal is the answer to an apply that apimachinery refused. What has no
// Status there is a configuration that doesn't fit the schema: 400, where
// Kubernetes answers 500 for the client's mistake.
func refusal(err error) *types.StatusError {
	var status *types.StatusError
	if !errors.As(err, &status) {
		return types.BadRequest(err.Error())
	}
	if status.ErrStatus.Reason == metav1.StatusReasonBadRequest {
		return types.BadRequest(status.ErrStatus.Message)
	}
	s := status.ErrStatus.DeepCopy()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Details != nil {
		// apimachinery walks a map of managers; the message is in order already.
		slices.SortStableFunc(s.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.Field, b.Field))
		})
	}
	return &types.StatusError{ErrStatus: *s}
}
