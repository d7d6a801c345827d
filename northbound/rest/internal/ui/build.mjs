// Builds the page from src into dist. generate.sh runs it.
import { build } from "esbuild";

await build({
  entryPoints: { app: "src/app.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  charset: "utf8",
  outdir: "dist",
  logLevel: "warning",
});
await build({ entryPoints: { app: "src/app.css" }, minify: true, outdir: "dist", logLevel: "warning" });
