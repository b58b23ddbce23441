package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strconv"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// A counter that many processes may increment at the same time.
func Example() {
	store, err := local.Open(local.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	api := httptest.NewServer(server.New(server.Options{Store: store}).Handler())
	defer api.Close()

	target, err := client.ResolveTarget(client.TargetOptions{Server: api.URL})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(target, client.Options{FieldManager: "counter"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.CloseIdleConnections()

	ctx := context.Background()
	counters := c.ConfigMaps("team-a")
	start, err := client.FromConfigMap(&types.ConfigMap{Data: map[string]string{"visits": "0"}})
	if err != nil {
		log.Fatal(err)
	}
	start.SetMeta("name", "counters")
	if _, err := retry.CreateOrGet(ctx, counters.Object("counters"), start, retry.Options{}); err != nil {
		log.Fatal(err)
	}

	visit := client.EditConfigMap(func(cm *types.ConfigMap) error {
		n, err := strconv.Atoi(cm.Data["visits"])
		if err != nil {
			return err
		}
		cm.Data["visits"] = strconv.Itoa(n + 1)
		return nil
	})
	for range 3 {
		if _, err := retry.Update(ctx, counters.Object("counters"), visit, retry.Options{Computed: true}); err != nil {
			log.Fatal(err)
		}
	}

	now, err := counters.Get(ctx, "counters")
	if err != nil {
		log.Fatal(err)
	}
	cm, err := client.ToConfigMap(now)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cm.Data["visits"])
	// Output: 3
}

// A program that follows its configuration, over restarts of the server.
func ExampleConfigMaps_Watch() {
	store, err := local.Open(local.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	api := httptest.NewServer(server.New(server.Options{Store: store}).Handler())
	defer api.Close()

	target, err := client.ResolveTarget(client.TargetOptions{Server: api.URL})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(target, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.CloseIdleConnections()

	ctx := context.Background()
	flags := types.NewDocument("team-a", "flags")
	mode := types.Field{Section: "data", Key: "mode"}
	flags.Set(mode, "blue")
	if flags, err = c.ConfigMaps("team-a").Create(ctx, flags, ""); err != nil {
		log.Fatal(err)
	}
	for event, err := range c.ConfigMaps("team-a").Watch(ctx, client.WatchOptions{Name: "flags"}) {
		switch {
		case err != nil:
			log.Fatal(err)
		case event.Type == client.Synced: // all that was there is known
			flags.Set(mode, "green")
			if _, err := c.ConfigMaps("team-a").Put(ctx, flags, ""); err != nil {
				log.Fatal(err)
			}
			continue
		}
		fmt.Println(event.Type, event.Object.Fields()[mode])
		if event.Type == client.Modified {
			break
		}
	}
	// Output:
	// ADDED blue
	// MODIFIED green
}
