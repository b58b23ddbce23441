// Package mirror keeps a folder in step with one ConfigMap, a file a key.
//
// A folder is laid out and switched as the kubelet does it for mounted
// ConfigMaps, so that programs which follow such mounts follow these too:
//
//	..cmctl-2026_11_30_14_05_36.1234/   the files of one version, and a record of it
//	..data -> ..cmctl-2026_11_30_14_05_36.1234
//	app.yaml -> ..data/app.yaml
//
// A new version is written beside the old one, and one rename of ..data switches
// all files at once: who reads sees the old version or the new one, never a mix,
// also after a crash at any moment.
//
//	folder, err := mirror.Open("/etc/app", mirror.Options{})
//	…
//	defer folder.Close()
//	changed, err := folder.Write(mirror.Record{Name: "app", Data: data})
package mirror
