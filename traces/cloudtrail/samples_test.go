package cloudtrail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linearize.example/traces"
)

// TestSamples reads public events that nobody here wrote. They are no part of the project: where they do not lie beside the
// checkout, TestShapes alone reads events of the same shapes.
func TestSamples(t *testing.T) {
	const folder = "../../../shared/samples"
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		t.Logf("no samples in %s", folder)
		return
	}
	h := &traces.History{}
	r := NewReader(h, Options{Skew: time.Second})
	var paths []string
	for _, pattern := range []string{"*.json*", "s3-invictus/*.json"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no samples in %s (%v); they lie beside the checkout", folder, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h.Inputs = append(h.Inputs, traces.Input{Path: filepath.Base(path)})
		if err := r.Read(f, len(h.Inputs)-1); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.Finish()
	sum := traces.Input{}
	for _, in := range h.Inputs {
		if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected {
			t.Errorf("%s: the counts do not add up: %+v", in.Path, in)
		}
		sum.Records += in.Records
		sum.Rejected += in.Rejected
	}
	if diff := cmp.Diff(traces.Input{Records: 577}, sum); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	var life []string
	for _, op := range h.Operations {
		if op.Group == "sg-04cfb7a4712d75b00" && op.Op != traces.DescribeSecurityGroups {
			life = append(life, op.Call.Add(time.Second).String()+" "+op.Op)
			if len(op.Sources) != 2 {
				t.Errorf("%s was read from %d files, want 2", op.ID, len(op.Sources))
			}
		}
	}
	want := []string{
		"2023-07-10T12:10:01Z CreateSecurityGroup",
		"2023-07-10T12:10:05Z AuthorizeSecurityGroupIngress",
		"2023-07-10T12:10:08Z AuthorizeSecurityGroupIngress",
		"2023-07-10T12:11:57Z RevokeSecurityGroupIngress",
		"2023-07-10T12:12:06Z DeleteSecurityGroup",
	}
	if diff := cmp.Diff(want, life); diff != "" {
		t.Errorf("the group's life (-want +got):\n%s", diff)
	}
}
