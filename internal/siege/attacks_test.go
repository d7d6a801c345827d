package siege

// attacksOnStores are those on an agent whose stores and VPP are real, by what they write.
func attacksOnStores() []attack {
	return []attack{
		{name: "references to namespaces that are none", run: namespaces, weakness: "a path that blocks holds its operation, and values of megabytes exceed the memory"},
		{name: "a VPP that hangs, disconnects and dies", run: hangs},
		{name: "interfaces with 100,000 addresses", run: addresses, weakness: "lists of 100,000 addresses exceed the memory"},
		{name: "control characters", run: controls},
		{name: "names that are too long", run: names},
		{name: "escapes in keys and values", run: escapes},
		{name: "documents that are large to read", run: parsers, weakness: "YAML of megabytes takes many times its size of memory"},
		{name: "http: idle and slow connections", run: idle},
		{name: "http: answers that nobody reads", run: unread, weakness: "answers that wait for their reader exceed the memory"},
		{name: "http: expensive requests", run: expensive, weakness: "several large plans at once exceed the memory"},
		{name: "errors of megabytes", run: longErrors, weakness: "together with the others it comes too near to the bound of the memory"},
		{name: "edits many times a second", run: edits},
		{name: "files that disagree about thousands of keys", run: spellings},
		{name: "values of 100 MB", run: large, weakness: "values of 100 MB exceed the memory"},
		{name: "files that others hold and lock", run: locks},
		{name: "links and devices among the files", run: links},
		{name: "thousands of files", run: crowds, weakness: "together with the others it comes too near to the bound of the memory"},
	}
}

// attacksByServers are those on an agent that connects to hostile servers.
func attacksByServers() []attack {
	return []attack{
		{name: "a hostile etcd", run: hostileEtcd, weakness: "answers of hundreds of megabytes exceed the memory"},
		{name: "a hostile Redis", run: hostileRedis},
		{name: "a hostile Consul", run: hostileConsul, weakness: "answers of hundreds of megabytes exceed the memory"},
		{name: "a VPP that spoils messages", run: hostileVPP},
		{name: "http: idle and slow connections to it", run: idle},
	}
}
