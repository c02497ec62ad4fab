package tools

// Kind is a kind of success. The adapters map it to their own statuses.
type Kind int

// The kinds.
const (
	Done         Kind = iota + 1 // the output says what is now
	Created                      // a new thing, with a place of its own
	NoContent                    // done, and there is nothing to say
	DoneOrGoesOn                 // done, or the output says that it goes on
	Attached                     // a connection that stays open, both ways
	DoneOrMade                   // done; the output says whether there is something new
	Content                      // the bytes of a file
	Archive                      // bytes that are written as they are made
	Feed                         // events, as they happen
)

// Success says what success looks like: its kind, and for an output where it
// can be found or whether it goes on.
type Success struct {
	Kind     Kind
	location func(output any) string
	goesOn   func(output any) bool
	made     func(output any) bool
}

// Location gives the path of the thing that a Created output describes, or "".
func (s Success) Location(output any) string {
	if s.location == nil {
		return ""
	}
	return s.location(output)
}

// GoesOn says whether what the output describes has not ended yet.
func (s Success) GoesOn(output any) bool { return s.goesOn != nil && s.goesOn(output) }

// Made says whether what the output describes is new.
func (s Success) Made(output any) bool { return s.made != nil && s.made(output) }

// IsTransfer says whether the answer is no JSON but bytes or events.
func (s Success) IsTransfer() bool { return s.Kind == Content || s.Kind == Archive || s.Kind == Feed }

func done() Success      { return Success{Kind: Done} }
func noContent() Success { return Success{Kind: NoContent} }

func created[Out any](location func(Out) string) Success {
	return Success{Kind: Created, location: func(output any) string { return location(output.(Out)) }}
}

func doneOrGoesOn[Out any](goesOn func(Out) bool) Success {
	return Success{Kind: DoneOrGoesOn, goesOn: func(output any) bool { return goesOn(output.(Out)) }}
}
