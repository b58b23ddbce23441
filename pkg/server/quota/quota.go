// Package quota says how much a namespace may hold: by ResourceQuota manifests, and
// by bounds for every namespace that no manifest speaks of.
//
//	rules, err := quota.Load("quotas", quota.Defaults{Objects: 1000, Bytes: quota.None})
//	for _, q := range rules.For("team-a") {
//		// each must hold
//	}
//
// The counting and comparing is the store's.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/cmctl/pkg/server/store"
)

// What a ResourceQuota may bound. The first two mean the same, in Kubernetes too.
const (
	ConfigMaps      = "configmaps"
	CountConfigMaps = "count/configmaps"
	// Bytes is the length of all ConfigMaps of the namespace together, as they are
	// stored: JSON with metadata, without earlier versions.
	Bytes = "cmserver.example.com/configmaps-bytes"
)

// None stands for no bound.
const None = -1

// Quota bounds what one namespace holds. It must not be modified.
type Quota struct {
	Name string           // as refusals tell it
	Hard map[string]int64 // by ConfigMaps, CountConfigMaps, Bytes; those that are not there are not bounded
}

// Most is what the namespace may hold, None where it is not bounded.
func (q Quota) Most() store.Usage {
	most := store.Usage{Records: None, Bytes: None}
	for key, bound := range q.Hard {
		if key == Bytes {
			most.Bytes = bound
		} else if most.Records < 0 || bound < most.Records {
			most.Records = bound
		}
	}
	return most
}

// Exceeded says in Kubernetes' words why a namespace that has used so much can't have
// so much more.
func (q Quota) Exceeded(used, added store.Usage) string {
	var requested, have, limited []string
	for _, key := range slices.Sorted(maps.Keys(q.Hard)) {
		bound, u, a, format := q.Hard[key], used.Records, added.Records, resource.DecimalSI
		if key == Bytes {
			u, a, format = used.Bytes, added.Bytes, resource.BinarySI
		}
		if a <= 0 || u+a <= bound {
			continue
		}
		pair := func(n int64) string { return key + "=" + resource.NewQuantity(n, format).String() }
		requested, have, limited = append(requested, pair(a)), append(have, pair(u)), append(limited, pair(bound))
	}
	return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
		strings.Join(requested, ","), strings.Join(have, ","), strings.Join(limited, ","))
}

// Defaults are the bounds of every namespace that has none of its own; None: no bound.
type Defaults struct{ Objects, Bytes int64 }

// The names of the quotas that Defaults make: those of the flags that set them.
const (
	objectsFlag = "namespace-max-objects"
	bytesFlag   = "namespace-max-bytes"
)

// Rules are the quotas of all namespaces. They never change, and may be shared.
type Rules struct {
	own   map[string][]Quota // by namespace, with what the defaults add
	every []Quota            // of those that have none of their own
}

// For are the quotas of a namespace. Each must hold. What no quota of its own bounds
// is bounded by the defaults.
func (r *Rules) For(namespace string) []Quota {
	if own, ok := r.own[namespace]; ok {
		return own
	}
	return r.every
}

// completed are quotas with the defaults of what none of them bounds.
func (d Defaults) completed(quotas []Quota) []Quota {
	for _, q := range quotas {
		most := q.Most()
		if most.Records >= 0 {
			d.Objects = None
		}
		if most.Bytes >= 0 {
			d.Bytes = None
		}
	}
	if d.Objects >= 0 {
		quotas = append(quotas, Quota{Name: objectsFlag, Hard: map[string]int64{CountConfigMaps: d.Objects}})
	}
	if d.Bytes >= 0 {
		quotas = append(quotas, Quota{Name: bytesFlag, Hard: map[string]int64{Bytes: d.Bytes}})
	}
	return quotas
}

// Current gives the quotas of rules that may be replaced.
func Current(rules func() *Rules) func(namespace string) []Quota {
	return func(namespace string) []Quota { return rules().For(namespace) }
}
