#!/usr/bin/env bash
# etcd: a range with keys_only and the lease of a key.
#
# KeyValue.lease is metadata of a key, like its revisions, and keys_only is documented as leaving out the values. So a
# client that wants to know whether a key has a lease would ask with keys_only.
#
# Expected: the answer has the lease, with keys_only and without.
# Seen:     v3.6.5 has it both ways. v3.7.3 has it without keys_only alone; with keys_only the lease is 0, as of a key
#           that has none. The revisions are there both ways.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT

# leases VERSION: prints whether the lease is in the answer, without keys_only and with it.
leases() {
	local at=$dir/$1 port=$((20000 + RANDOM % 20000)) lease all only
	mkdir "$at"
	(
		cd "$at"
		go mod init example.com/finding
		go get "go.etcd.io/etcd/server/v3@$1" "go.etcd.io/etcd/etcdctl/v3@$1"
		go build -o server go.etcd.io/etcd/server/v3
		go build -o ctl go.etcd.io/etcd/etcdctl/v3
	) >"$at/build.log" 2>&1 || { cat "$at/build.log" >&2; exit 1; }
	"$at/server" --data-dir "$at/data" --log-level error --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
		--listen-peer-urls "http://127.0.0.1:$((port + 1))" >"$at/server.log" 2>&1 &
	server=$!
	ctl() { "$at/ctl" --endpoints "127.0.0.1:$port" "$@"; }
	until ctl endpoint health >/dev/null 2>&1; do sleep 0.2; done
	lease=$(ctl lease grant 100 | sed 's/lease \([0-9a-f]*\) .*/\1/')
	ctl put --lease="$lease" k v >/dev/null
	all=$(ctl get k -w json | grep -c '"lease":' || true)
	only=$(ctl get k --keys-only -w json | grep -c '"lease":' || true)
	kill "$server"
	wait "$server" || true
	echo "$1: without keys_only $all, with keys_only $only"
}

seen=$(leases v3.6.5; leases v3.7.3)
echo "$seen"
[ "$seen" = "v3.6.5: without keys_only 1, with keys_only 1
v3.7.3: without keys_only 1, with keys_only 0" ] || { echo "this has changed" >&2; exit 1; }
