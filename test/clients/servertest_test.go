package clients

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/cmctl/pkg/server/servertest"
)

// setFlag is code that somebody might want to test: it sets one key, and leaves
// the others to whoever else sets them.
func setFlag(ctx context.Context, c client.Client, key client.ObjectKey, flag, value string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var cm corev1.ConfigMap
		if err := c.Get(ctx, key, &cm); err != nil {
			return err
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[flag] = value
		return c.Update(ctx, &cm)
	})
}

// How to test it with controller-runtime's client: one call for the server, one
// for the client. Nothing is to be downloaded, or to be put away afterwards.
func TestExampleOfServertest(t *testing.T) {
	server := servertest.Start(t)
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	key := client.ObjectKey{Namespace: "shop", Name: "flags"}

	if err := setFlag(ctx, c, key, "mode", "green"); !apierrors.IsNotFound(err) {
		t.Errorf("without the object: %v, want NotFound", err)
	}
	if err := c.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string]string{"rollout": "10"},
	}); err != nil {
		t.Fatal(err)
	}
	if err := setFlag(ctx, c, key, "mode", "green"); err != nil {
		t.Fatal(err)
	}
	var got corev1.ConfigMap
	if err := c.Get(ctx, key, &got); err != nil {
		t.Fatal(err)
	}
	if got.Data["mode"] != "green" || got.Data["rollout"] != "10" {
		t.Errorf("data %v", got.Data)
	}
}
