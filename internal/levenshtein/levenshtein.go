// Package levenshtein measures how far apart two words are, so that a misspelt
// name can be answered with the one that was meant. It protects nothing; its
// callers bound the words, since its time grows with the product of their
// lengths.
package levenshtein

// Distance counts the insertions, deletions and replacements of bytes that make
// b of a.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
