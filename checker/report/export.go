package report

// Duration prints a length in seconds as all reports print it: "39 m 47 s", "150 ms".
func Duration(seconds float64) string { return duration(seconds) }
