package evidence

import (
	"testing"
	"time"
)

func TestRepairTimes(t *testing.T) {
	got := repairTimes(false, 1)
	restart, steady := got[0], got[1]
	// The first of eight draws of 30 min + U(0, 15 min).
	if restart.Median < 30*time.Minute || restart.Max > 45*time.Minute {
		t.Errorf("after a restart: %+v", restart)
	}
	// Never longer than two resyncs of 11 h and the longest delay; and longer than one for some.
	if steady.Max > 22*time.Hour+45*time.Minute || steady.Max < 12*time.Hour {
		t.Errorf("steady: %+v", steady)
	}
	verifying := repairTimes(true, 1)
	if verifying[0].Max != 0 || verifying[1].Max > 11*time.Hour {
		t.Errorf("with verification: %+v", verifying)
	}
	for i, r := range repairTimes(false, 1) {
		if r != got[i] {
			t.Errorf("equal seeds, different results: %+v and %+v", r, got[i])
		}
	}
}
