package stream

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

func utf16Text(s string, big, mark bool) string {
	units := utf16.Encode([]rune(s))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	var b []byte
	for _, u := range units {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func TestUTF8(t *testing.T) {
	const text = `{"a":"é 𝄞"}`
	for name, in := range map[string]string{
		"plain": text, "mark": "\ufeff" + text,
		"little endian": utf16Text(text, false, true), "big endian": utf16Text(text, true, true),
		"little endian without a mark": utf16Text(text, false, false), "big endian without a mark": utf16Text(text, true, false),
	} {
		for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			got, err := io.ReadAll(UTF8(src))
			if err != nil || string(got) != text {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
	}
	for _, short := range []string{"", "x", "\xff", "\xff\xfe", "\xef\xbb"} {
		if _, err := io.ReadAll(UTF8(strings.NewReader(short))); err != nil {
			t.Errorf("%q: %v", short, err)
		}
	}
}

// random returns n bytes that do not compress.
func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestAhead(t *testing.T) {
	want := random(3*blockSize + 17)
	for _, src := range []io.Reader{bytes.NewReader(want), iotest.HalfReader(bytes.NewReader(want)), iotest.DataErrReader(bytes.NewReader(want))} {
		a := NewAhead(src)
		got, err := io.ReadAll(a)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes, want %d; %v", len(got), len(want), err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("broken")
	a := NewAhead(io.MultiReader(bytes.NewReader(want[:100]), iotest.ErrReader(broken)))
	if got, err := io.ReadAll(a); !errors.Is(err, broken) || len(got) != 100 {
		t.Errorf("got %d bytes and %v, want 100 and the source's error", len(got), err)
	}
	endless := NewAhead(endlessReader{})
	if _, err := io.ReadFull(endless, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	endless.Close()
	endless.Close()
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }

func TestGunzip(t *testing.T) {
	text := random(100_000)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	wrongSum := bytes.Clone(whole)
	wrongSum[len(wrongSum)-8] ^= 1
	for _, test := range []struct {
		name   string
		in     []byte
		size   int // at least
		damage error
	}{
		{"whole", whole, len(text), nil},
		{"two members", append(bytes.Clone(whole), whole...), 2 * len(text), nil},
		{"cut off", whole[:len(whole)/2], len(text) / 3, io.ErrUnexpectedEOF},
		{"wrong sum", wrongSum, len(text), gzip.ErrChecksum},
		{"something behind", append(bytes.Clone(whole), "something else"...), len(text), gzip.ErrHeader},
		{"no gzip", []byte("hello hello hello"), 0, gzip.ErrHeader},
	} {
		g := NewGunzip(bytes.NewReader(test.in), 1000)
		got, err := io.ReadAll(g)
		damage := g.Damage()
		if err != nil || len(got) < test.size || (damage == nil) != (test.damage == nil) ||
			damage != nil && damage.Error() != test.damage.Error() {
			t.Errorf("%s: got %d bytes, %v and damage %v; want %d and %v", test.name, len(got), err, damage, test.size, test.damage)
		}
	}
	broken := errors.New("broken")
	g := NewGunzip(io.MultiReader(bytes.NewReader(whole[:1000]), iotest.ErrReader(broken)), 1000)
	if _, err := io.ReadAll(g); !errors.Is(err, broken) || g.Damage() != nil {
		t.Errorf("got %v and damage %v, want the source's error", err, g.Damage())
	}
}
