package main

import (
	"net"
	"testing"
)

// TestLeadsTo: a proxy that passes calls on to itself would do so until it had no connection left.
func TestLeadsTo(t *testing.T) {
	for _, c := range []struct {
		url, listening string
		want           bool
	}{
		{"http://127.0.0.1:4566", "127.0.0.1:4566", true},
		{"http://localhost:4566/", "127.0.0.1:4566", true},
		{"http://[::1]:4566", "[::1]:4566", true},
		{"http://127.0.0.1:4566", "0.0.0.0:4566", true},
		{"http://127.0.0.1:4567", "127.0.0.1:4566", false},
		{"http://127.0.0.2:4566", "127.0.0.1:4566", false},
		{"http://other:4566", "127.0.0.1:4566", false},
		{"https://ec2.eu-central-1.amazonaws.com", "127.0.0.1:443", false},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.listening)
		if err != nil {
			t.Fatal(err)
		}
		if got := leadsTo(c.url, at); got != c.want {
			t.Errorf("%s leads to %s: %v, want %v", c.url, c.listening, got, c.want)
		}
	}
}

// TestIsURL: what no request can be sent to is refused before anything is done.
func TestIsURL(t *testing.T) {
	for text, want := range map[string]bool{
		"http://127.0.0.1:4566": true, "https://ec2.eu-central-1.amazonaws.com/": true,
		"127.0.0.1:4566": false, "nonsense": false, "http://": false, "http:///x": false, "ftp://x": false, "http://%zz": false, "": false,
	} {
		if isURL(text) != want {
			t.Errorf("isURL(%q) is not %v", text, want)
		}
	}
}
