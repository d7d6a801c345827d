package siege

// attacksOnStores are those on an agent whose stores and VPP are real, by what they write.
func attacksOnStores() []attack {
	return []attack{
		{name: "references to namespaces that are none", run: namespaces},
		{name: "a VPP that hangs, disconnects and dies", run: hangs},
		{name: "interfaces with as many addresses as possible", run: addresses},
		{name: "control characters", run: controls},
		{name: "names that are too long", run: names},
		{name: "escapes in keys and values", run: escapes},
		{name: "documents that are large to read", run: parsers},
		{name: "http: idle and slow connections", run: idle},
		{name: "http: answers that nobody reads", run: unread},
		{name: "http: expensive requests", run: expensive},
		{name: "http: dumps of the system", run: dumps},
		{name: "grpc: requests that are large to decode", run: denseCalls},
		{name: "grpc: requests without an end and answers that nobody reads", run: heldCalls},
		{name: "errors of megabytes", run: longErrors},
		{name: "edits many times a second", run: edits},
		{name: "files that disagree about thousands of keys", run: spellings},
		{name: "values of 100 MB", run: large},
		{name: "claims of the label", run: claimsOfLabel},
		{name: "more keys than there is room for", run: hoard},
		{name: "files that others hold and lock", run: locks},
		{name: "a reader of the log that hangs", run: hungReader},
		{name: "links and devices among the files", run: links},
		{name: "thousands of files", run: crowds},
	}
}

// attacksByServers are those on an agent that connects to hostile servers.
func attacksByServers() []attack {
	return []attack{
		{name: "a hostile etcd", run: hostileEtcd},
		{name: "a hostile Redis", run: hostileRedis},
		{name: "a hostile Consul", run: hostileConsul},
		{name: "a VPP that spoils messages", run: hostileVPP},
		{name: "http: idle and slow connections to it", run: idle},
		{name: "http: dumps of what the VPP spoils", run: dumps},
		{name: "grpc: requests that are large to decode, to it", run: denseCalls},
		{name: "https: requests that are not encrypted", run: unencrypted},
		{name: "https: headers and bodies without an end", run: heldRequests},
		{name: "a reader of its log that hangs", run: hungReader},
	}
}
