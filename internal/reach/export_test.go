package reach

// FindIn is Find with the sockets of this user and of root.
func FindIn(own, root string) string { return find(own, root) }
