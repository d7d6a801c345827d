// The picture of a value and its neighbours: dependencies at the left, derived values and
// dependents at the right. Each of them is a link.
import type { Neighbour, ValueDetails } from "./api";
import { Section } from "./parts";
import { go, here } from "./state";
import { split } from "./text";

const wide = 168, high = 24, gap = 6, between = 56, most = 12; // pixels, and boxes in a column

// A Box is one value in the picture; without a key it is a text.
interface Box { key?: string; text: string; state: string; label?: string; via?: string }

function boxOf(n: Neighbour): Box {
  return { key: n.Key, text: split(n.Key)[1], state: n.State, ...(n.Label ? { label: n.Label } : {}), ...(n.Via ? { via: n.Via } : {}) };
}

// few returns the first boxes, and one that counts the others.
function few(all: Box[], more: number): Box[] {
  const hidden = Math.max(0, all.length - most) + more;
  const out = all.slice(0, most);
  if (hidden > 0) out.push({ text: `and ${hidden} more`, state: "" });
  return out;
}

// Graph draws the neighbours. Without any there is no picture.
export function Graph({ of, details }: { of: string; details: ValueDetails }) {
  const needs: Box[] = [];
  for (const n of details.Needs) {
    if (n.Met.length === 0) needs.push({ ...(n.Expected && !n.Expected.includes("*") && !n.Expected.includes(" | ") ? { key: n.Expected } : {}), text: n.Expected ? split(n.Expected)[1] : n.Label, state: "NONEXISTENT", label: n.Label });
    for (const m of n.Met.slice(0, 3)) needs.push({ ...boxOf(m), label: n.Label });
    const more = n.Met.length - Math.min(3, n.Met.length) + (n.More ?? 0);
    if (more > 0) needs.push({ text: `${more} more`, state: "", label: n.Label });
  }
  const left = few(needs, 0);
  const right = few([
    ...details.Derived.map((d) => ({ ...boxOf(d), label: "derived" })),
    ...merged(details.Dependents).map(boxOf),
  ], (details.MoreDerived ?? 0) + (details.MoreDependents ?? 0));
  if (left.length + right.length === 0) return null;
  const rows = Math.max(left.length, right.length, 1);
  const height = rows * (high + gap) + 4;
  const width = 3 * wide + 2 * between;
  const y = (i: number, n: number) => (height - n * (high + gap) + gap) / 2 + i * (high + gap);
  const x = [0, wide + between, 2 * (wide + between)] as const;
  const mid = y(0, 1) + high / 2;
  return (
    <Section title="Graph" note="depends on → this value → derived values and dependents">
      <svg class="graph" viewBox={`-1 -1 ${width + 2} ${height + 2}`} width={width} height={height} role="group" aria-label="Neighbours of the value">
        {left.map((b, i) => <Edge key={i} x1={wide} y1={y(i, left.length) + high / 2} x2={x[1]} y2={mid} open={b.state === "NONEXISTENT"} />)}
        {right.map((_, i) => <Edge key={i} x1={x[1] + wide} y1={mid} x2={x[2]} y2={y(i, right.length) + high / 2} open={false} />)}
        {left.map((b, i) => <Node key={i} box={b} x={x[0]} y={y(i, left.length)} />)}
        <Node box={{ text: split(of)[1], state: details.Value.State }} x={x[1]} y={y(0, 1)} self />
        {right.map((b, i) => <Node key={i} box={b} x={x[2]} y={y(i, right.length)} />)}
      </svg>
    </Section>
  );
}

// merged leaves one neighbour of each key: it may have several dependencies.
function merged(all: Neighbour[]): Neighbour[] {
  return [...new Map(all.map((n) => [n.Key, n])).values()];
}

function Edge({ x1, y1, x2, y2, open }: { x1: number; y1: number; x2: number; y2: number; open: boolean }) {
  const m = (x1 + x2) / 2;
  return <path class={open ? "edge open" : "edge"} d={`M${x1} ${y1}C${m} ${y1} ${m} ${y2} ${x2} ${y2}`} />;
}

// Node is one box. Texts are cut: the whole key is in the title.
function Node({ box, x, y, self }: { box: Box; x: number; y: number; self?: boolean }) {
  const room = box.state ? 21 : 23; // characters of the fixed width
  const text = box.text.length > room ? "…" + box.text.slice(1 - room) : box.text;
  const title = [box.key ?? box.text, box.state, box.label, box.via ? `by ${box.via}` : ""].filter(Boolean).join(", ");
  const shape = (
    <>
      <title>{title}</title>
      <rect x={x} y={y} width={wide} height={high} rx={2} />
      {box.state ? <circle cx={x + 11} cy={y + high / 2} r={3.5} /> : null}
      <text x={x + (box.state ? 21 : 11)} y={y + high / 2 + 4}>{text}</text>
    </>
  );
  const style = `node s-${box.state.toLowerCase()}${self ? " self" : ""}`;
  if (!box.key || self) return <g class={style}>{shape}</g>;
  const address = here({ key: box.key });
  return <a class={style} href={address} onClick={(e) => { e.preventDefault(); go(address); }} aria-label={title}>{shape}</a>;
}
