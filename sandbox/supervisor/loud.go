package supervisor

import (
	"sync"

	"golang.org/x/sys/unix"
)

// A pump whose pipe is full whenever it looks is loud: it is given a larger pipe
// and reads it in larger pieces, which costs half as much for each byte. That is
// for a few at a time, since both take memory, and the kernel lets a user have only
// so many large pipes before it makes all of his new ones small.
const (
	loudSize = 1 << 20 // what the kernel allows everybody by default
	maxLoud  = 8
	// calmSize is less than what a loud pump finds: then it is loud no more.
	calmSize = 4 << 10
)

var (
	loudTurns   = make(chan struct{}, maxLoud)
	loudBuffers = sync.Pool{New: func() any { return new([loudSize]byte) }}
)

// adapt makes a pump loud or calm by how much it found in its pipe.
func (p *pump) adapt(fd, found int) {
	switch {
	case !p.loud && found == bufferSize:
		select {
		case loudTurns <- struct{}{}:
			p.loud = resize(fd, loudSize)
			if !p.loud { // a terminal, or too many large pipes
				<-loudTurns
			}
		default:
		}
	case p.loud && found < calmSize && resize(fd, bufferSize):
		p.calm()
	}
}

// calm gives back what a loud pump has.
func (p *pump) calm() {
	if p.loud {
		p.loud = false
		<-loudTurns
	}
}

// resize changes what a pipe holds, and says whether it could: what is in it must
// fit.
func resize(fd, size int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
	return err == nil
}
