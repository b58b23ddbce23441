package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// While nobody answers the watch is begun anew and again, and takes no requests for progress.
// Who waits for it is told all the same that it is too late.
func TestAReadDoesNotOutwaitItsTime(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := &Store{client: client, ctx: t.Context(), opts: Options{}.withDefaults()}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	told := make(chan error)
	go func() { told <- s.hasten(ctx, 1) }()
	select {
	case err := <-told:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is told %v, want DeadlineExceeded", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it still waits")
	}
}
