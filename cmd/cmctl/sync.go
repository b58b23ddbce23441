package main

import (
	"fmt"
	"io/fs"
	"strconv"

	"example.com/cmctl/cmd/cmctl/internal/mirror"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type syncOptions struct {
	*factory
	name  string
	to    string
	from  string
	watch bool
	force bool
	mode  string
	hook  hookFlags
	guard guardFlags
}

func newSync(f *factory) *cobra.Command {
	o := &syncOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "sync NAME {--to DIR | --from DIR}",
		Short: "Keep a ConfigMap and a folder of files in sync",
		Long: `Keep a ConfigMap and a folder of files in sync, a file a key.

--to DIR writes the ConfigMap into the folder. All files are switched at once, by
one rename of a link as the kubelet does it for mounted ConfigMaps: a program that
reads them sees the old version or the new one, never a mix. With --watch the
folder follows the ConfigMap until the command is ended, over restarts of the
server; --exec and --signal tell a program of each change of the files, and the
next sync with one of them tells it again if that failed. What
somebody changed in the folder since the last sync is not overwritten: the command
stops with exit code 3.

--from DIR writes what was changed in the folder since the last sync to the
ConfigMap, as edit would: what others changed there meanwhile stays, and what both
changed is a conflict (exit code 3). A folder that was never synced is written
only where nothing is lost by it: to a ConfigMap that doesn't exist, or is equal.

--force decides for the source: for the ConfigMap with --to, for the folder with
--from.`,
		Example: `  cmctl sync app --to /etc/app
  cmctl sync app --to /etc/app --watch --signal HUP --pid-file /run/app.pid
  cmctl sync nginx --to /etc/nginx/conf.d --watch --exec 'nginx -s reload'
  cmctl sync app --from /etc/app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			if o.from != "" {
				return o.runFrom(cmd.Context())
			}
			return o.runTo(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "write the ConfigMap into this `DIR`")
	cmd.Flags().StringVar(&o.from, "from", "", "write the changes made in this `DIR` to the ConfigMap")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on following the ConfigMap")
	cmd.Flags().BoolVar(&o.force, "force", false, "overwrite what was changed on the side that is written to")
	cmd.Flags().StringVar(&o.mode, "file-mode", "0644", "mode of the files, in octal")
	o.hook.add(cmd.Flags())
	o.guard.add(cmd.Flags())
	return cmd
}

func (o *syncOptions) complete(cmd *cobra.Command, args []string) error {
	var err error
	if o.name, err = oneName("sync", args); err != nil {
		return err
	}
	switch {
	case (o.to == "") == (o.from == ""):
		return usagef("sync takes either --to DIR or --from DIR")
	case o.from != "" && (o.watch || o.hook.given()):
		return usagef("--watch, --exec and --signal go with --to")
	case o.to != "" && o.guard.given():
		return usagef("--resource-version and --uid go with --from: --to writes nothing to the server")
	}
	if err := o.guard.validate(cmd.Flags()); err != nil {
		return err
	}
	return o.hook.validate()
}

// open takes the folder.
func (o *syncOptions) open(path string) (*mirror.Folder, error) {
	mode, err := strconv.ParseUint(o.mode, 8, 32)
	if err != nil || mode > 0o777 {
		return nil, usagef("--file-mode takes an octal mode such as 0640, not %q", o.mode)
	}
	folder, err := mirror.Open(path, mirror.Options{Mode: fs.FileMode(mode), Tell: o.hook.given()})
	if err != nil {
		return nil, fmt.Errorf("the folder can't be used: %w", err)
	}
	return folder, nil
}

// recordFrom is what a folder in step with the document has.
func (o *syncOptions) recordFrom(conn *connection, doc types.Document) mirror.Record {
	r := mirror.Record{
		Server: conn.Target().String(), Namespace: conn.namespace, Name: o.name,
		UID: doc.UID(), ResourceVersion: doc.ResourceVersion(), Data: map[string][]byte{},
	}
	for f, v := range doc.Fields() {
		if f.Section == "data" {
			r.Data[f.Key], _ = types.RawValue(v) // a server stores no other
		}
	}
	return r
}
