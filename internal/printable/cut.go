package printable

import (
	"fmt"
	"unicode/utf8"
)

// Cut shortens text that is longer than most bytes, and appends its length. The result
// does not keep the memory of the longer text.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", Beginning(text, most), len(text))
}

// Beginning returns at most that many bytes of text, without a part of a character.
func Beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
