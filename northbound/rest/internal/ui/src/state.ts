// State that parts of the page share, as values that tell their readers when they change.
import { useEffect, useState } from "preact/hooks";

// A Cell holds a value. Components that use it are drawn again when it changes.
export class Cell<T> {
  private readers = new Set<(v: T) => void>();
  constructor(private value: T) {}
  get(): T { return this.value; }
  set(v: T): void {
    if (Object.is(v, this.value)) return;
    this.value = v;
    for (const r of [...this.readers]) r(v);
  }
  subscribe(f: (v: T) => void): () => void {
    this.readers.add(f);
    return () => { this.readers.delete(f); };
  }
}

// useCell returns the value of a cell.
export function useCell<T>(cell: Cell<T>): T {
  const [value, setValue] = useState(() => cell.get());
  useEffect(() => {
    setValue(() => cell.get());
    return cell.subscribe((v) => setValue(() => v));
  }, [cell]);
  return value;
}

// A Place is the part of the address behind #: which view, and what is chosen in it. The back
// button of the browser works, and a place can be sent to a colleague.
export interface Place { view: string; args: URLSearchParams }

function read(): Place {
  const [view, args] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: view || "problems", args: new URLSearchParams(args ?? "") };
}

export const place = new Cell<Place>(read());
let shown = location.hash;

// follow shows the place of the address, unless it is shown already.
function follow(): void {
  if (location.hash === shown) return;
  shown = location.hash;
  place.set(read());
}
addEventListener("hashchange", follow);

// href returns the address of a place. Arguments that are undefined or empty are left out.
export function href(view: string, args: Record<string, string | string[] | undefined> = {}): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one) out.append(name, one);
  }
  const text = out.toString();
  return `#${view}${text ? "?" + text : ""}`;
}

// here returns the address of the present view with other arguments; undefined removes one.
export function here(changes: Record<string, string | string[] | undefined>): string {
  const { view, args } = place.get();
  const all: Record<string, string | string[] | undefined> = {};
  for (const name of new Set(args.keys())) all[name] = args.getAll(name);
  return href(view, { ...all, ...changes });
}

// go shows another place. With replace the back button skips the present one.
export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else location.hash = address;
  follow(); // at once: what follows a key, such as the focus, is about the new place
}

// useNow returns the time each second, for ages. It asks nobody.
const second = new Cell(0);
setInterval(() => { if (!document.hidden) second.set(second.get() + 1); }, 1000);
export function useSecond(): void { useCell(second); }
