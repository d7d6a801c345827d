// The stream of changes: one EventSource for the whole page. An event only says what is
// different; components read it again from the other paths. So the page asks nothing while
// nothing changes.
import { ask, Failure } from "./api";
import { Cell } from "./state";

// How the stream is: shown in the header. Of a lost agent nobody knows anything; a busy one has too many readers.
export type Line = "connecting" | "live" | "lost" | "busy" | "refused";

export const line = new Cell<Line>("connecting");
export const why = new Cell("");
// heard is when the agent was last there, in milliseconds since 1970; 0: not yet.
export const heard = new Cell(0);
export const label = new Cell("");
export const counts = new Cell<Record<string, number>>({});
export const connections = new Cell<Record<string, boolean>>({});

// Counters that grow when something of their kind has changed. What was read at one number is
// outdated at the next.
export const values = new Cell(0);
export const transactions = new Cell(0);
export const sources = new Cell(0);

// The keys of the last event about values; undefined: any may have changed.
export const changed = new Cell<ReadonlySet<string> | undefined>(undefined);

let stream: EventSource | undefined;
let again: ReturnType<typeof setTimeout> | undefined;
let wait = 1000; // ms until the next attempt, if the agent refuses the stream

function grow(cell: Cell<number>): void { cell.set(cell.get() + 1); }

// everything makes all components read again: after an interruption nobody knows what changed.
function everything(): void {
  changed.set(undefined);
  for (const cell of [values, transactions, sources]) grow(cell);
}

// on handles one kind of event. Its data comes from the agent, and is JSON.
function on<T>(s: EventSource, name: string, f: (data: T) => void): void {
  s.addEventListener(name, (e) => f(JSON.parse((e as MessageEvent<string>).data) as T));
}

// reached names the connections that were ready while the page was open.
export const reached = new Set<string>();

function link(all: Record<string, boolean>): void {
  for (const [name, ready] of Object.entries(all)) if (ready) reached.add(name);
  connections.set(all);
}

// open begins to read the stream. It does nothing if it is open.
export function open(): void {
  if (stream || document.hidden) return;
  clearTimeout(again);
  const s = stream = new EventSource("events");
  on<{ Label: string; States: Record<string, number>; Connections: Record<string, boolean> }>(s, "hello", (e) => {
    wait = 1000;
    label.set(e.Label);
    counts.set(e.States);
    link(e.Connections);
    line.set("live");
    why.set("");
    everything();
  });
  on<{ Changed: { Key: string; State: string }[]; Missed: boolean; States: Record<string, number> }>(s, "values", (e) => {
    counts.set(e.States);
    changed.set(e.Missed ? undefined : new Set(e.Changed.map((c) => c.Key)));
    grow(values);
  });
  on(s, "transactions", () => grow(transactions));
  on(s, "sources", () => grow(sources));
  on<{ Connections: Record<string, boolean> }>(s, "connections", (e) => { link(e.Connections); grow(sources); });
  s.onerror = () => {
    if (line.get() === "live") heard.set(Date.now());
    if (s.readyState !== EventSource.CLOSED) line.set("lost");
    // The browser tries again by itself, unless the agent has refused the stream.
    if (s.readyState === EventSource.CLOSED) void refused();
  };
}

// refused finds out why there is no stream, and tries again later.
async function refused(): Promise<void> {
  close();
  try {
    const answer = await ask("scheduler/transactions?limit=1");
    line.set(answer.status === 403 ? "refused" : "busy");
    if (answer.status === 401) return; // the login opens the stream
    why.set(answer.status === 403 ? "your user lacks the permission dump" : "the agent has too many readers");
  } catch (err) {
    line.set("lost");
    why.set((err as Failure).message);
  }
  again = setTimeout(open, wait);
  wait = Math.min(2 * wait, 30_000);
}

// close ends the stream.
export function close(): void {
  clearTimeout(again);
  stream?.close();
  stream = undefined;
}

// A page that nobody sees for a while needs no events: streams are few, and a browser has only
// six connections for an agent.
let hidden: ReturnType<typeof setTimeout> | undefined;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(close, 60_000);
  else open();
});
