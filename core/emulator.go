package core

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

const (
	// titleRunes and titleStack bound the title, and how many are put aside by
	// programs that want to restore it.
	titleRunes = 256
	titleStack = 10
	// clusterBytes bounds what is shown of one cell: any number of marks can be
	// put over one letter.
	clusterBytes = 64
	// morsel is how much is fed to the emulator between two looks at the clock.
	// What it holds may cost a hundred fillings of the screen, not more.
	morsel = 256
)

// errTooCostly says that what a terminal was sent takes too long to draw.
var errTooCostly = errors.New("it takes too long to draw")

// emulator is a terminal that shows what it was sent. It has no keyboard and
// answers nothing: a program that asks where the cursor is must not find the
// answer of somebody who merely looks.
//
// Each screen, the main one and the alternate one of full-screen programs, is an
// emulator of the library's of its own, of which only the main screen is used:
// what scrolls out of the library's alternate screen is kept, ten thousand lines
// of it, and that cannot be turned off.
type emulator struct {
	size      TerminalSize
	main, alt *vt.Emulator
	alternate bool
	title     string
	titles    []string
	next      func() // what the sequence that was just fed asks of both screens
	resetting bool
}

// newEmulator makes one that is empty. It takes about 8 MiB, and half a kilobyte
// for each cell.
func newEmulator(size TerminalSize, alternate bool) *emulator {
	e := &emulator{size: size, alternate: alternate}
	e.main, e.alt = e.screen(), e.screen()
	return e
}

// screen makes one of the two.
func (e *emulator) screen() *vt.Emulator {
	t := vt.NewEmulator(e.size.Cols, e.size.Rows)
	t.SetScrollbackSize(1)
	if keyboard, ok := t.InputPipe().(io.Closer); ok {
		_ = keyboard.Close() // what it would answer is dropped
	}
	// The library takes margins beyond the screen, and then fails; and it
	// repeats a character as often as it is told.
	e.bound(t, 'r', e.size.Rows)
	e.bound(t, 's', e.size.Cols)
	e.bound(t, 'b', e.size.Cols)
	e.onAlternate(t, 'h', true)
	e.onAlternate(t, 'l', false)
	e.onTitles(t)
	t.RegisterEscHandler('c', func() bool {
		if e.resetting {
			return false
		}
		e.next = e.reset
		return true
	})
	return t
}

// bound bounds the parameters of a sequence.
func (e *emulator) bound(t *vt.Emulator, final int, most int) {
	t.RegisterCsiHandler(final, func(params ansi.Params) bool {
		for i, p := range params {
			if p.Param(0) > most {
				params[i] = ansi.Param(most)
			}
		}
		return false // the library's own goes on with it
	})
}

// onAlternate has the modes of the alternate screen switch between ours.
func (e *emulator) onAlternate(t *vt.Emulator, final byte, on bool) {
	t.RegisterCsiHandler(ansi.Command('?', 0, final), func(params ansi.Params) bool {
		for i, p := range params {
			switch p.Param(0) {
			case 47, 1047, 1049:
				e.next = func() { e.turn(on) }
				params[i] = 0 // no mode: the library must not switch too
			}
		}
		return false
	})
}

// onTitles keeps the title, which programs set, put aside and restore.
func (e *emulator) onTitles(t *vt.Emulator) {
	for _, command := range []int{0, 2} {
		t.RegisterOscHandler(command, func(data []byte) bool {
			_, title, _ := bytes.Cut(data, []byte{';'})
			e.title = printable(title, titleRunes)
			return true
		})
	}
	t.RegisterCsiHandler('t', func(params ansi.Params) bool {
		what, _, _ := params.Param(0, 0)
		which, _, _ := params.Param(1, 0)
		switch {
		case which == 1: // that of the icon
		case what == 22 && len(e.titles) < titleStack:
			e.titles = append(e.titles, e.title)
		case what == 23 && len(e.titles) > 0:
			e.title = e.titles[len(e.titles)-1]
			e.titles = e.titles[:len(e.titles)-1]
		}
		return true
	})
}

// printable gives text without what is no character to be seen.
func printable(text []byte, most int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, string(text[:min(len(text), 4*most)])))
	return string(runes[:min(len(runes), most)])
}

// now is the screen that is shown.
func (e *emulator) now() *vt.Emulator {
	if e.alternate {
		return e.alt
	}
	return e.main
}

// turn shows one of the two screens. The alternate one is empty at first.
func (e *emulator) turn(alternate bool) {
	if alternate && !e.alternate {
		e.clear(e.alt)
	}
	e.alternate = alternate
}

// reset is what ESC c does.
func (e *emulator) reset() {
	e.alternate, e.title = false, ""
	e.clear(e.main)
}

func (e *emulator) clear(t *vt.Emulator) {
	e.resetting = true
	_, _ = t.WriteString("\x1bc")
	e.resetting = false
}

// sequence is what may call for e.next, which therefore is looked for behind it.
var sequence = regexp.MustCompile(`\x1b(?:c|\[\?[0-9;]*[hl])`)

// feed sends bytes to the terminal until a deadline. They come from a box, so
// that a fault of the library's that they meet is an error here.
func (e *emulator) feed(data []byte, deadline time.Time) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the terminal emulator failed: %v", fault)
		}
	}()
	for len(data) > 0 {
		if time.Now().After(deadline) {
			return errTooCostly
		}
		bite := data[:wholeClusters(data)]
		if at := sequence.FindIndex(bite); at != nil {
			bite = bite[:at[1]]
		} else if at := bytes.LastIndexByte(bite, '\x1b'); at > 0 && len(bite) < len(data) {
			bite = bite[:at] // so that no sequence is cut
		}
		_, _ = e.now().Write(bite)
		data = data[len(bite):]
		if e.next != nil {
			e.next()
			e.next = nil
		}
	}
	return nil
}

// wholeClusters is how much of data makes a morsel. It ends before an ASCII
// character where there is one, since what makes a character of several runes
// must be written at one time.
func wholeClusters(data []byte) int {
	if len(data) <= morsel {
		return len(data)
	}
	for n := morsel; n > morsel/2; n-- {
		if data[n] < 0x80 {
			return n
		}
	}
	return morsel
}

// show gives what the terminal shows.
func (e *emulator) show() Screen {
	at := e.now().CursorPosition()
	rows := make([]string, e.size.Rows)
	for y := range rows {
		rows[y] = e.row(y)
	}
	return Screen{
		Text: strings.Join(rows, "\n"), Cols: e.size.Cols, Rows: e.size.Rows,
		CursorCol: min(max(0, at.X), e.size.Cols-1), CursorRow: min(max(0, at.Y), e.size.Rows-1),
		Alternate: e.alternate, Title: e.title,
	}
}

// row gives the text of a row. A wide character takes two cells, of which the
// second is not looked at.
func (e *emulator) row(y int) string {
	var text strings.Builder
	for x := 0; x < e.size.Cols; {
		cell := e.now().CellAt(x, y)
		if cell == nil || cell.Width < 1 {
			text.WriteByte(' ')
			x++
			continue
		}
		content := printable([]byte(cell.Content), clusterBytes/4)
		if content == "" {
			content = strings.Repeat(" ", cell.Width)
		}
		text.WriteString(content)
		x += cell.Width
	}
	return strings.TrimRight(text.String(), " ")
}
