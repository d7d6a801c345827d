// A list of any length: only the rows that are seen exist, and only their parts are read.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Pace } from "./read";

const chunk = 100; // rows that are read at once
const beyond = 10; // rows that exist above and below those that are seen
const kept = 40; // chunks in memory

export interface Part<T> { total: number; rows: T[] }

interface Props<T> {
  id: string; // another one is another list, which begins at its top
  version: number; // grows when the agent has something new
  label: string;
  height: number; // of a row, in pixels; with grows, the least one
  grows?: boolean; // rows are as high as their texts
  read: (offset: number, limit: number, signal: AbortSignal) => Promise<Part<T>>;
  row: (item: T) => ComponentChildren; // cells
  keyOf: (item: T) => string;
  chosen?: string; // the key of the row that is shown in detail
  choose: (item: T, byKeyboard: boolean) => void;
  onTotal?: (total: number) => void;
  empty: ComponentChildren;
  class?: string;
}

// A Layout is where the rows are. Rows have the same height, except those that the browser has drawn higher.
class Layout {
  private readonly more = new Map<number, number>(); // pixels above the least height, by row
  private sums: { row: number; sum: number }[] = []; // sorted: the pixels of all higher rows up to this one

  constructor(private readonly height: number) {}

  // learn notes the height of a row, and returns by how much it differs from the one before.
  learn(row: number, height: number): number {
    const more = Math.max(0, height - this.height), was = this.more.get(row) ?? 0;
    if (more === was) return 0;
    if (more === 0) this.more.delete(row);
    else this.more.set(row, more);
    let sum = 0;
    this.sums = [...this.more.entries()].sort((a, b) => a[0] - b[0]).map(([at, pixels]) => ({ row: at, sum: sum += pixels }));
    return more - was;
  }

  // top returns where a row begins, in pixels below the top of the list.
  top(row: number): number {
    let from = 0, to = this.sums.length; // the number of higher rows before this one
    while (from < to) {
      const mid = (from + to) >> 1;
      if (this.sums[mid]!.row < row) from = mid + 1;
      else to = mid;
    }
    return row * this.height + (from > 0 ? this.sums[from - 1]!.sum : 0);
  }

  // at returns the row at a place.
  at(pixels: number): number {
    let from = 0, to = Math.max(0, Math.floor(pixels / this.height));
    while (from < to) {
      const mid = (from + to + 1) >> 1;
      if (this.top(mid) <= pixels) from = mid;
      else to = mid - 1;
    }
    return from;
  }
}

// What was read: the chunks by number, and the length of the list; -1: not known yet.
interface Read<T> { chunks: Map<number, { version: number; rows: T[] }>; total: number; error: Error | undefined }

// Rows is a listbox: it has the focus, and the arrow keys move within it.
export function Rows<T>(props: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [at, setAt] = useState(0); // the row with the cursor
  const layout = useRef(new Layout(props.height));
  const state = useRef<Read<T>>({ chunks: new Map(), total: -1, error: undefined });
  const latest = useRef({ props, view });
  latest.current = { props, view };
  const pace = useRef<Pace | undefined>(undefined);

  // wanted returns the chunks that are seen and not up to date.
  const wanted = () => {
    const { props, view } = latest.current;
    const { chunks, total } = state.current;
    const first = Math.floor(Math.max(0, layout.current.at(view.top) - beyond) / chunk);
    const end = layout.current.at(view.top + view.height) + 1 + beyond;
    const last = Math.floor((total < 0 ? 0 : Math.min(end, Math.max(0, total - 1))) / chunk);
    const out: number[] = [];
    for (let i = first; i <= Math.max(first, last); i++) if ((chunks.get(i)?.version ?? -1) < props.version) out.push(i);
    return out;
  };

  useEffect(() => {
    const s: Read<T> = state.current = { chunks: new Map(), total: -1, error: undefined };
    layout.current = new Layout(latest.current.props.height);
    setAt(0);
    if (box.current) box.current.scrollTop = 0;
    setView((v) => ({ ...v, top: 0 }));
    const p = pace.current = new Pace(async (signal) => {
      for (const i of wanted()) {
        const { props } = latest.current;
        const version = props.version;
        try {
          const part = await props.read(i * chunk, chunk, signal);
          if (signal.aborted) return;
          s.chunks.delete(i); // the newest are last
          s.chunks.set(i, { version, rows: part.rows });
          s.error = undefined;
          if (s.total !== part.total) {
            s.total = part.total;
            props.onTotal?.(part.total);
          }
        } catch (error) {
          if (signal.aborted) return;
          s.error = error as Error;
          s.total = Math.max(0, s.total);
        }
        for (const old of s.chunks.keys()) if (s.chunks.size > kept) s.chunks.delete(old);
        redraw((n) => n + 1);
        if (s.error) return;
      }
    });
    p.ask(true);
    return () => p.stop();
  }, [props.id]);

  useEffect(() => pace.current?.ask(), [props.version]);
  // A person who scrolls waits for the rows. A list that moves fast is read where it stops.
  useEffect(() => {
    const timer = setTimeout(() => { if (wanted().length > 0) pace.current?.ask(true); }, 60);
    return () => clearTimeout(timer);
  }, [view.top, view.height]);

  useLayoutEffect(() => {
    const el = box.current!;
    const measure = () => setView({ top: el.scrollTop, height: el.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(el);
    measure();
    return () => observer.disconnect();
  }, []);

  // The browser tells the heights of the rows that it has drawn. What is seen stays where it is.
  useLayoutEffect(() => {
    const el = box.current!;
    if (!props.grows) return;
    const seen = layout.current.at(el.scrollTop);
    let moved = 0, differs = false;
    for (const row of el.querySelectorAll<HTMLElement>(".row")) {
      const i = Number(row.dataset["row"]);
      const by = layout.current.learn(i, row.offsetHeight);
      differs ||= by !== 0;
      if (i < seen) moved += by;
    }
    if (moved !== 0) el.scrollTop += moved;
    if (differs) redraw((n) => n + 1);
  });

  const { chunks, total, error } = state.current;
  const n = Math.max(0, total);
  const item = (i: number): T | undefined => chunks.get(Math.floor(i / chunk))?.rows[i % chunk];
  const cursor = Math.min(at, Math.max(0, n - 1));

  const move = (to: number) => {
    to = Math.max(0, Math.min(n - 1, to));
    setAt(to);
    const el = box.current!;
    const y = layout.current.top(to), end = layout.current.top(to + 1);
    if (y < el.scrollTop) el.scrollTop = y;
    else if (end > el.scrollTop + el.clientHeight) el.scrollTop = end - el.clientHeight;
  };
  const page = Math.max(1, Math.floor(view.height / props.height) - 1);
  const keys: Record<string, () => void> = {
    ArrowDown: () => move(cursor + 1), j: () => move(cursor + 1), ArrowUp: () => move(cursor - 1), k: () => move(cursor - 1),
    PageDown: () => move(cursor + page), PageUp: () => move(cursor - page), Home: () => move(0), End: () => move(n - 1),
    Enter: () => { const one = item(cursor); if (one !== undefined) props.choose(one, true); },
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const f = keys[e.key];
    if (!f || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    f();
  };

  const from = Math.max(0, layout.current.at(view.top) - beyond);
  const to = Math.min(n, layout.current.at(view.top + view.height) + 1 + beyond);
  const drawn = [];
  for (let i = from; i < to; i++) {
    const one = item(i);
    const chosen = one !== undefined && props.keyOf(one) === props.chosen;
    drawn.push(
      <div key={i} id={`row-${i}`} role="option" aria-selected={chosen} aria-setsize={n} aria-posinset={i + 1}
        class={`row${i === cursor ? " cursor" : ""}${chosen ? " chosen" : ""}`} data-row={i} style={{ top: `${layout.current.top(i)}px`, [props.grows ? "minHeight" : "height"]: `${props.height}px` }}
        onClick={() => { setAt(i); if (one !== undefined) props.choose(one, false); }}>
        {one === undefined ? <span class="blank">…</span> : props.row(one)}
      </div>,
    );
  }
  return (
    <div ref={box} class={`rows ${props.class ?? ""}`} role="listbox" tabIndex={0} aria-label={props.label} aria-busy={total < 0}
      aria-activedescendant={n > 0 ? `row-${cursor}` : undefined} onKeyDown={onKeyDown}
      onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}>
      {error ? <p class="notice bad" role="alert">{error.message}</p> : total === 0 ? <div class="notice">{props.empty}</div> : null}
      <div class="all" style={{ height: `${layout.current.top(n)}px` }}>{drawn}</div>
    </div>
  );
}
