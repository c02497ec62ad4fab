package core

import (
	"io"
	"log/slog"
)

// recorder is the way of the output of a command or a shell into its log.
type recorder struct {
	log                 OutputLog
	stdout, stderr, tty Redactor
}

// newRecorder is for a command, and for a shell, all of whose output is tty.
func newRecorder(log OutputLog) *recorder {
	return &recorder{
		log:    log,
		stdout: record(log, StreamStdout),
		stderr: record(log, StreamStderr),
		tty:    record(log, StreamTTY),
	}
}

// record is the one place where a stream enters the log. What must not be seen
// is taken out here, before any reader.
func record(log OutputLog, s Stream) Redactor { return unredacted{log.Writer(s)} }

// unredacted lets everything through.
type unredacted struct{ io.Writer }

func (unredacted) Flush() error { return nil }

// flush brings what is held back into the log.
func (r *recorder) flush(log *slog.Logger) {
	for _, stream := range []Redactor{r.stdout, r.stderr, r.tty} {
		if err := stream.Flush(); err != nil {
			log.Error("cannot flush the output of a command", "error", err)
		}
	}
}

// ends gives the lengths of the streams.
func (r *recorder) ends() LateOffsets {
	var ends LateOffsets
	ends.Stdout, _ = r.log.Size(StreamStdout)
	ends.Stderr, _ = r.log.Size(StreamStderr)
	ends.TTY, _ = r.log.Size(StreamTTY)
	ends.All, _ = r.log.Size(StreamAll)
	return ends
}

// close ends the use of the log; nothing writes any more.
func (r *recorder) close(log *slog.Logger) {
	r.flush(log)
	r.log.Release()
}
