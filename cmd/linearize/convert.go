package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"linearize.example/checker/report"
	"linearize.example/traces"
	"linearize.example/traces/capture"
)

func newConvertCommand() *cobra.Command {
	var output string
	var redact bool
	opt := capture.Options{}
	cmd := &cobra.Command{
		Use:   "convert [FILE|DIR|-]...",
		Short: "Any capture to a history",
		Long: `convert reads a capture as check does, joins what several sources saw of the same call, and writes
one history (NDJSON, see docs/history.md).`,
		Example: `  linearize convert cloudtrail/ controller.log -o run.ndjson`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readCapture(cmd, args, opt)
			if err != nil {
				return err
			}
			h := traces.Merge(c.History, opt.Skew)
			if redact {
				h = report.NewRedactor(c.History, c.Bindings).History(h)
			}
			if output == "" || output == "-" {
				return traces.WriteHistory(cmd.OutOrStdout(), h)
			}
			var b bytes.Buffer
			if err := traces.WriteHistory(&b, h); err != nil {
				return err
			}
			return writeFile(output, b.Bytes())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of standard output")
	cmd.Flags().BoolVar(&redact, "redact", false, "replace ids, addresses and names by stable pseudonyms")
	cmd.Flags().DurationVar(&opt.Skew, "clock-skew", 1e9, "how far clocks may be apart")
	return cmd
}
