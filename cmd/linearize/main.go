// Command linearize judges recorded histories of the rules between load balancers and pods: whether they were ever empty
// or did not cover what was needed, whether repair came within its bound, and what did it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses. They are part of the tool's contract.
const (
	exitHolds     = 0 // all properties hold
	exitViolated  = 1 // something is violated
	exitUsage     = 2 // bad usage or input
	exitUndecided = 3 // nothing is violated, but something is possible or unknown
)

// exitError carries an exit status; its message, if any, goes to standard error.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// memoryLimit is from where on garbage is collected more eagerly: a million operations then fit into 1 GiB. It is no hard
// limit; GOMEMLIMIT overrides it.
const memoryLimit = 850 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the tool and returns its exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitHolds
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(stderr, "linearize:", exit.err)
		}
		return exit.status
	}
	fmt.Fprintln(stderr, "linearize:", err)
	return exitUsage
}

// version is what the build says of itself: the module's version or the commit, and Go's.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (text == "" || text == "(devel)") {
			text = s.Value
		}
	}
	return text + " " + info.GoVersion
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "linearize",
		Short: "Judge recorded histories of the rules between load balancers and pods",
		Long: `linearize takes what was recorded of a security group that an AWS Load Balancer Controller manages
(CloudTrail, the controller's log, histories) and decides, over every order of the calls that the
record allows, whether the rules were ever empty or did not cover what was needed, and whether
repair came within its bound. It names the call that did it.

Exit status: 0 all properties hold; 1 something is violated; 3 nothing is violated, but something
is possible or unknown; 2 bad usage or input.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Usage(); err != nil {
				return err
			}
			return &exitError{status: exitUsage}
		},
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	root.AddCommand(newCheckCommand(), newExplainCommand(), newExploreCommand(), newEvidenceCommand(), newConvertCommand(), newSnapshotCommand(), newRecordCommand(),
		newSimulateCommand())
	return root
}
