package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/supervise"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type execOptions struct {
	*factory
	name    string
	command []string
	restart bool
	prefix  string
	grace   time.Duration
}

func newExec(f *factory) *cobra.Command {
	o := &execOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a program with a ConfigMap as its environment",
		Long: `Run a program with the keys of a ConfigMap as environment variables, in addition to
those that cmctl has itself. Where both have one, the ConfigMap's counts. Keys that
can't be variables, such as app.yaml, and binary values are left out with a note.

With --restart-on-change the program is ended with SIGTERM and started anew when
a variable changes, whatever happens to the server in between; signals are passed
on to it. The exit code is the program's; 127 if there is no such program, 126 if
it can't be run.`,
		Example: `  cmctl exec flags -- printenv mode
  cmctl exec flags --restart-on-change -- ./server --port 8080
  cmctl exec flags --prefix FLAG_ -- env`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				return usagef("exec takes NAME -- COMMAND; the -- is missing")
			}
			names, err := parseNames(args[:dash])
			if err != nil {
				return err
			}
			if o.command = args[dash:]; len(names) != 1 || len(o.command) == 0 {
				return usagef("exec takes one NAME and, after --, a COMMAND")
			}
			o.name = names[0]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.ContainsAny(o.prefix, "=\x00") {
				return usagef("--prefix=%q can't begin a variable", o.prefix)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.restart, "restart-on-change", false, "start the program anew when a variable changes")
	cmd.Flags().StringVar(&o.prefix, "prefix", "", "put `TEXT` before each key")
	cmd.Flags().DurationVar(&o.grace, "grace-period", 10*time.Second, "how long the program may take to end before it is killed for a restart")
	return cmd
}

func (o *execOptions) run(ctx context.Context) error {
	path, err := supervise.Find(o.command[0])
	if err != nil {
		return err // before anything is read
	}
	conn, err := o.connect("exec")
	if err != nil {
		return err
	}
	doc, err := o.readOne(ctx, conn.ConfigMaps(conn.namespace).Object(o.name))
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	variables, left, err := o.variables(doc)
	if err != nil {
		return conn.explain(conn.namespace, o.name, err)
	}
	if len(left) > 0 {
		o.note("no variables can be made of: %s", strings.Join(left, ", "))
	}
	if o.restart {
		return o.supervise(ctx, conn, variables)
	}
	// The program takes this one's place: signals, terminal and exit code are its
	// own.
	if err := syscall.Exec(path, o.command, environment(variables)); err != nil {
		return &supervise.StartError{Program: path, Err: &fs.PathError{Op: "exec", Path: path, Err: err}}
	}
	return nil
}

// variableName is what every shell takes for a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variables are the keys that can be variables, with their values, and the keys
// that are left out.
func (o *execOptions) variables(doc types.Document) (found map[string]string, left []string, err error) {
	found = map[string]string{}
	for f, v := range doc.Fields() {
		if f.Section != "data" {
			continue
		}
		text, isText := v.(string)
		switch {
		case !isText, !variableName.MatchString(o.prefix + f.Key):
			left = append(left, f.Key)
		case strings.Contains(text, "\x00"):
			return nil, nil, fmt.Errorf("data[%s] holds a NUL byte, and no variable can", f.Key)
		default:
			found[o.prefix+f.Key] = text
		}
	}
	slices.Sort(left)
	return found, left, nil
}

// environment is this process's own with the variables in it.
func environment(variables map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := variables[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// supervise runs the program and starts it anew when its variables change.
func (o *execOptions) supervise(ctx context.Context, conn *connection, first map[string]string) error {
	ctx, stop := context.WithCancel(ctx)
	environments := make(chan []string, 1)
	environments <- environment(first)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		defer close(environments)
		o.follow(ctx, conn, first, environments)
	}()
	defer func() { stop(); <-followed }()
	program := supervise.Program{
		Words: o.command, In: o.In, Out: o.Out, Err: o.Err, Grace: o.grace,
		Restarts: func() { o.note("configmap/%s changed: starting %s anew", o.name, o.command[0]) },
	}
	code := 0
	err := o.interrupts.whileRunning(func() (err error) {
		code, err = supervise.Run(ctx, program, environments)
		return err
	})
	if err == nil && code != 0 {
		err = &saidError{code, fmt.Errorf("the program ended with exit code %d", code)}
	}
	return err
}

// follow sends an environment each time the variables change. What can't be an
// environment, or a ConfigMap that is gone, leaves the program as it is.
func (o *execOptions) follow(ctx context.Context, conn *connection, known map[string]string, environments chan<- []string) {
	for event, err := range o.followOne(ctx, conn, o.name) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.note("warning: changes are no longer followed: %v", conn.explain(conn.namespace, o.name, err))
			return
		case event.Type == client.Deleted:
			o.note("%s was deleted; the program goes on as it is", conn.ConfigMaps(conn.namespace).Object(o.name).Object())
			continue
		case event.Object == nil:
			continue
		}
		next, _, err := o.variables(event.Object)
		if err != nil {
			o.note("warning: version %s is passed over: %v", event.Object.ResourceVersion(), err)
			continue
		}
		if maps.Equal(known, next) {
			continue
		}
		known = next
		select {
		case environments <- environment(next):
		case <-ctx.Done():
			return
		}
	}
}
