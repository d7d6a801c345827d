#!/bin/sh
# Builds the page: src -> dist. npm installs into .cache, because no tool of this repository
# expects foreign files in its folders. Without npm the committed build stays; a test compares
# its recorded hash with the sources.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
	echo "SKIPPED: northbound/rest/internal/ui is not built: npm is missing" >&2
	exit 0
fi
work="$(cd ../../../.. && pwd)/.cache/ui"
mkdir -p "$work"
cp package.json package-lock.json tsconfig.json build.mjs "$work/"
rm -rf "$work/src" "$work/dist"
cp -r src "$work/src"
if ! (cd "$work" && npm ci --silent --no-audit --no-fund --ignore-scripts); then
	echo "SKIPPED: northbound/rest/internal/ui is not built: npm cannot install its packages" >&2
	exit 0
fi
(
	cd "$work"
	npm run --silent check
	npm run --silent build
)
cp "$work/src/index.html" "$work/src/icon.svg" "$work/dist/"
rm -rf dist
cp -r "$work/dist" dist
go run ./sum >dist/sources.sha256
