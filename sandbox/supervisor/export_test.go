package supervisor

// Seal is seal, for the test of the seals.
var Seal = seal

// ScriptFile is scriptFile, for the same.
var ScriptFile = scriptFile

// LockedDown is lockedDown, for a test with processes that are none of a box's.
var LockedDown = lockedDown

// ListingFile is listingFile, for the test of its seals.
var ListingFile = listingFile

// StartedAt and BirthOf are startedAt and birthOf, for a test of both ways.
var (
	StartedAt = startedAt
	BirthOf   = birthOf
)
