// Package traces holds the history that every verdict rests on: operations, observations and the intervals in which
// they took effect, whatever the source they were read from.
//
// A capture is read by one of the packages below this one (cloudtrail, controllerlog, or this package's own history
// format), which all deliver the same types. Merge joins what several observers saw of the same call. Nothing here
// judges; package checker does.
package traces
