package main

import "strings"

// plain are the characters that no shell takes for anything but themselves, besides letters and digits.
const plain = "%+,-./:=@_"

// pasted is a word of a printed command as a shell takes it: quoted where it has to be, and where it would be taken for a
// flag, as a path.
func pasted(word string) string {
	if strings.HasPrefix(word, "-") {
		word = "./" + word
	}
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(plain, r))
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
