package awsapi

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plainElement is an element as encoding/xml sees it.
type plainElement struct {
	Name     string
	Text     string
	Children []plainElement
}

func plainOf(e *element) plainElement {
	p := plainElement{Name: e.name}
	for c := e.first; c != nil; c = c.next {
		p.Children = append(p.Children, plainOf(c))
	}
	if len(p.Children) == 0 {
		p.Text = strings.TrimSpace(e.content)
	}
	return p
}

// slowXML reads a document with encoding/xml.
func slowXML(body []byte) (*plainElement, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		if s, ok := t.(xml.StartElement); ok {
			return slowElement(d, s)
		}
	}
}

func slowElement(d *xml.Decoder, s xml.StartElement) (*plainElement, error) {
	e := &plainElement{Name: s.Name.Local}
	for {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			c, err := slowElement(d, t)
			if err != nil {
				return nil, err
			}
			e.Children = append(e.Children, *c)
		case xml.EndElement:
			if e.Text = strings.TrimSpace(e.Text); len(e.Children) > 0 {
				e.Text = ""
			}
			return e, nil
		case xml.CharData:
			e.Text += string(t)
		}
	}
}

var documents = []string{
	`<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE x><a xmlns="urn:x" b="c>d" c='"'><!-- <b> --><b>1 &lt; 2 &#65;&#x42;</b><c/><d><![CDATA[<&]]></d></a>`,
	"<a>\n  <item>\n    <x:b> spaced out </x:b>\n  </item>\n</a>\n<more/>",
	`<a><b></a></b>`, `<a`, `<a><b>`, `</a>`, `<>`, `<a>&nbsp;&amp;</a>`, `<a>one<!-- -->two</a>`, `text`, ``,
	strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100),
}

func TestParseXML(t *testing.T) {
	for i, want := range []string{"ok", "ok", "error", "error", "error", "error", "error", "ok", "ok", "error", "error", "error"} {
		got := "ok"
		if _, err := parseXML([]byte(documents[i])); err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, not %s", documents[i], got, want)
		}
	}
	e, err := parseXML([]byte(`<a><b>&nbsp;&amp;&#xFFFFFFFF;&</b></a>`))
	if err != nil || e.text("b") != "&nbsp;&&#xFFFFFFFF;&" {
		t.Errorf("unknown entities give %v %q", err, e.text("b"))
	}
}

// FuzzParseXML: whatever encoding/xml reads is read, and read as the same, unless it is too deep or its text too long.
func FuzzParseXML(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseXML(body)
		want, slow := slowXML(body)
		if slow != nil || err == errDepth || len(body) > maxJoined || bytes.ContainsAny(body, "\r:") || bytes.Contains(body, []byte("<!")) {
			return
		}
		if err != nil {
			t.Fatalf("encoding/xml reads it: %v", err)
		}
		if diff := cmp.Diff(*want, plainOf(got)); diff != "" {
			t.Error(diff)
		}
	})
}

// What is written can be read again, whatever the text.
func FuzzWriteXML(f *testing.F) {
	f.Add("a < b & c", "\x00\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		x := newXML()
		x.open("r")
		x.text("a", a)
		x.list("l", "item", 1, func(int) { x.text("b", b) })
		x.list("none", "item", 0, nil)
		x.close("r")
		if _, err := slowXML(x.b); err != nil {
			t.Fatalf("%v: %q", err, x.b)
		}
		e, err := parseXML(x.b)
		if err != nil {
			t.Fatal(err)
		}
		valid := strings.Map(func(r rune) rune {
			if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 {
				return r
			}
			return '\ufffd'
		}, strings.ToValidUTF8(a, "\ufffd"))
		if got := e.text("a"); strings.ToValidUTF8(a, "") == a && got != strings.TrimSpace(valid) {
			t.Errorf("%q is read as %q", a, got)
		}
	})
}
