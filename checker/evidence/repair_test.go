package evidence

import "testing"

func minutes(n float64) float64 { return 60 * n }

func TestRepairTimes(t *testing.T) {
	got := repairTimes(false, 1, 300)
	restart, steady := got[0], got[1]
	// The first of eight draws of 30 min + U(0, 15 min).
	if restart.Median < minutes(30) || restart.Max > minutes(45) {
		t.Errorf("after a restart: %+v", restart)
	}
	// Never longer than two resyncs of 11 h and the longest delay; and longer than one for some.
	if steady.Max > minutes(22*60+45) || steady.Max < minutes(12*60) {
		t.Errorf("steady: %+v", steady)
	}
	verifying := repairTimes(true, 1, 300)
	if verifying[0].Max != 0 || verifying[1].Max > minutes(11*60) {
		t.Errorf("with verification: %+v", verifying)
	}
	for i, r := range repairTimes(false, 1, 300) {
		if r != got[i] {
			t.Errorf("equal seeds, different results: %+v and %+v", r, got[i])
		}
	}
}
