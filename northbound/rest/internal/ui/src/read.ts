// Reading from the agent within components.
import { useEffect, useRef, useState } from "preact/hooks";

// A Pace runs a task again and again, one run at a time, and never faster than the agent can
// answer: after a run that took t it waits 4 t. Requests meanwhile become one further run. So a
// flood of events costs the agent a fifth of its time at most, and the last request is served.
export class Pace {
  private asked = false;
  private running = false;
  private idleUntil = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = new AbortController();

  constructor(private readonly task: (signal: AbortSignal) => Promise<void>) {}

  // ask requests a run. With soon it begins at once if none is in progress: for what a person
  // has asked for.
  ask(soon = false): void {
    this.asked = true;
    if (soon) this.idleUntil = 0;
    if (!this.running) this.schedule();
  }

  // stop ends the run in progress. There is none afterwards.
  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.abort.signal.aborted) return;
    this.timer = setTimeout(() => void this.run(), Math.max(0, this.idleUntil - performance.now()));
  }

  private async run(): Promise<void> {
    this.asked = false;
    this.running = true;
    const begin = performance.now();
    await this.task(this.abort.signal);
    const end = performance.now();
    this.running = false;
    this.idleUntil = end + Math.max(100, 4 * (end - begin));
    if (this.asked) this.schedule();
  }
}

export interface Answer<T> { data?: T; error?: Error; busy: boolean }

// useRead reads with f, and again when id or version is different. While a newer version is
// read, the older answer stays; for another id it goes.
export function useRead<T>(id: string, version: number, f: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { id: string }>({ id: "", busy: true });
  const pace = useRef<Pace | undefined>(undefined);
  const latest = useRef(f);
  latest.current = f;
  useEffect(() => {
    const p = pace.current = new Pace(async (signal) => {
      try {
        const data = await latest.current(signal);
        if (!signal.aborted) setAnswer({ id, data, busy: false });
      } catch (error) {
        if (!signal.aborted) setAnswer({ id, error: error as Error, busy: false });
      }
    });
    return () => p.stop();
  }, [id]);
  useEffect(() => pace.current?.ask(), [id, version]);
  return answer.id === id ? answer : { busy: true };
}
