package value

// An Order says when a value is deleted and created, compared to other values that leave and
// come at the same time.
type Order uint8

const (
	// BreakFirst: it is deleted before anything is created.
	BreakFirst Order = iota
	// MakeFirst: it can exist beside the value that replaces it. When it is not desired any
	// more, it is deleted after all else that is possible: make before break.
	MakeFirst
	// CreateLast: it may be the same item of the system as a value with MakeFirst. So it is
	// deleted as with BreakFirst, and created after all values with MakeFirst were deleted.
	CreateLast
)

// Evidence says how a read-back decides whether a derived value exists.
type Evidence uint8

const (
	// ShownByBase: it exists if Derived of the found base value has it.
	ShownByBase Evidence = iota
	// FollowsBase: it exists while its base exists, because it has no verbs.
	FollowsBase
	// ReadAlone: it is read back by itself; its base says nothing about it.
	ReadAlone
)
