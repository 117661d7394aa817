package awsapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"linearize.example/traces/awsapi"
)

// TestDocumentation loads the examples of the documentation.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/record.md")
	if err != nil {
		t.Fatal(err)
	}
	worlds, faults := 0, 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		switch {
		case strings.HasPrefix(block[1], "# a world"):
			worlds++
			_, err = awsapi.LoadWorld(strings.NewReader(block[1]))
		case strings.HasPrefix(block[1], "# faults"):
			faults++
			_, err = awsapi.LoadFaults(strings.NewReader(block[1]))
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
	if worlds < 2 || faults < 1 {
		t.Errorf("%d worlds and %d faults are documented", worlds, faults)
	}
}
