package pack

// SetMostPut has an archive bring at most so many names to directories that are there,
// and gives what puts that back.
func SetMostPut(n int) (restore func()) {
	before := mostPut
	mostPut = n
	return func() { mostPut = before }
}

// SetMostMerged has an archive be unpacked over so many directories that are there at
// most, and gives what puts that back.
func SetMostMerged(n int) (restore func()) {
	before := mostMerged
	mostMerged = n
	return func() { mostMerged = before }
}
