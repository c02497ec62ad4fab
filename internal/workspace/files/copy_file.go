package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"envapi/internal/workspace/holes"
	"envapi/internal/workspace/inside"
)

// mostAtOnce is how much is copied between two looks at whether it is still wanted.
const mostAtOnce = 16 << 20

// file copies a regular file.
func (c *copying) file(at *inside.Place, to *os.File, name string) error {
	from, err := at.OpenRegular(c.here(name))
	if err != nil {
		return err
	}
	defer from.Close()
	st, err := statOf(from)
	if err != nil {
		return failed("look at a file", err)
	}
	keep, err := attributes(at.Leaf)
	if err != nil {
		return failed("read the extended attributes of a file", err)
	}
	file, err := createAt(to, name)
	if err != nil {
		return failed("copy a file", err)
	}
	defer file.Close()
	err = c.content(from, file, &st)
	if err == nil {
		err = finish(file, keep, st.Mode&0o777, &st)
	}
	if err == nil && c.files <= mostSynced {
		err = file.Sync()
	}
	return failed("copy a file", err)
}

// finish gives a copy what it has beside its content. Times are last.
func finish(f *os.File, keep []attribute, mode uint32, st *unix.Stat_t) error {
	if err := dress(f, keep, fs.FileMode(mode)); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, held(f), []unix.Timespec{st.Atim, st.Mtim}, 0)
}

// narrows says whether a directory got rights that it is not to have, to be moved.
func (c *copying) narrows() bool { return c.directory && c.top != nil && c.mode&0o700 != 0o700 }

// narrow takes them from it again, once it was put in its place.
func (c *copying) narrow() error {
	if err := c.top.Chmod(fs.FileMode(c.mode)); err != nil {
		return err
	}
	return c.top.Sync()
}

// content shares the blocks where the file system can, and else copies those that
// hold data. What grows meanwhile is copied to the length that it had.
func (c *copying) content(from, to *os.File, st *unix.Stat_t) error {
	if err := c.spend(0); err != nil || st.Size == 0 {
		return err
	}
	if occupied := min(st.Size, st.Blocks*512); c.bytes+occupied <= c.options.Limit {
		if unix.IoctlFileClone(fd(to), fd(from)) == nil {
			return c.spend(occupied)
		}
	}
	end := st.Size
	for at := int64(0); at < end; {
		data, hole, err := holes.Next(from, at, end)
		if err != nil {
			return err
		}
		if data == end {
			break
		}
		if at, err = c.span(from, to, data, hole); err != nil {
			return err
		}
		if at < hole {
			end = at // it was cut short meanwhile
		}
	}
	return to.Truncate(end)
}

// span copies the bytes between two offsets, and says how far it came: less where the
// file ends before.
func (c *copying) span(from, to *os.File, at, end int64) (int64, error) {
	for at < end {
		piece := min(end-at, mostAtOnce)
		if err := c.spend(piece); err != nil {
			return at, err
		}
		n, err := holes.CopyRange(from, to, at, piece)
		c.bytes -= piece - n
		if err != nil || n == 0 {
			return at, err
		}
		at += n
	}
	return at, nil
}
