package files

// Copies and LargeTags are the turns of those under way.
var Copies, LargeTags = copies, largeTags

// LargeBytes is up to which size a file is read for its ETag without a turn.
const LargeBytes = largeBytes
