// The agent's HTTP API: types of the answers that the page reads, and functions that ask.
// The types repeat those of northbound/rest/wire; its Go comments explain the fields.
import { plain } from "./text";

export interface Message { ProtoMsgName: string; ProtoMsgData: unknown }

export interface Root { Key?: string; Text: string }

export interface ListedValue {
  Key: string;
  State: string;
  Since: string;
  Error?: string;
  Details?: string[];
  LastOperation?: string;
  Descriptor?: string;
  Base?: string;
  Roots?: Root[];
}

export interface ValuePage { Total: number; Offset: number; States: Record<string, number>; Values: ListedValue[] }

export interface Neighbour { Key: string; State: string; Label?: string; Via?: string }

export interface Need { Label: string; Expected: string; Met: Neighbour[]; More?: number }

export interface ValueDetails {
  Value: ListedValue;
  Desired?: Message;
  Actual?: Message;
  Needs: Need[];
  Derived: Neighbour[];
  Dependents: Neighbour[];
  MoreDerived?: number;
  MoreDependents?: number;
}

export interface Explanation { Key?: string; State?: string; Text: string; Because?: Explanation[] }

export interface Revision {
  Since: string;
  Until: string;
  Value: Message | null;
  Flags: Record<string, string>;
}

export interface TransactionSummary {
  SeqNum: number;
  Start: string;
  Stop: string;
  TxnType: string;
  ResyncType?: string;
  Description?: string;
  RetryForTxn?: number;
  RetryAttempt?: number;
  Values: number;
  Planned: number;
  Executed: number;
  Failed: number;
  NotReadBack: number;
  First?: string;
}

export interface TransactionPage { Total: number; Offset: number; Transactions: TransactionSummary[] }

export interface Operation {
  Operation: string;
  Key: string;
  NewState?: string;
  NewValue?: Message;
  NewErrMsg?: string;
  PrevState?: string;
  PrevValue?: Message;
  PrevErrMsg?: string;
  Waits?: string[];
  NOOP?: boolean;
  IsDerived?: boolean;
  IsProperty?: boolean;
  IsRevert?: boolean;
  IsRetry?: boolean;
  IsRecreate?: boolean;
}

export interface Invalid { Key?: string; Line?: number; Error: string; Fields?: string[] }

export interface Plan {
  Operations: Operation[];
  Invalid: Invalid[] | null;
  Warnings?: { Key: string; Line?: number; Text: string }[];
}

export interface Source {
  Name: string;
  Priority: number;
  State: string;
  Since: string;
  Complete: boolean;
  Revision?: number;
  Keys: number;
  Listed?: number;
  Refused?: number;
  Remembered?: number;
  Doubted?: number;
  Problems?: number;
  Faults?: string[];
  Error?: string;
  Failures?: number;
  LastError?: string;
  LastErrorAt?: string;
  Waiting?: number;
  Lag?: number;
}

export interface Connection { Name: string; State: string; Since: string; Error?: string; Unknown?: { Descriptor: string; Reason: string; Since: string }[] }

export interface Declaration {
  Key: string;
  Source: string;
  Priority: number;
  State: string;
  Wins: boolean;
  Remembered?: boolean;
  Doubted?: boolean;
  Error?: string;
}

export interface Drift {
  Start: string;
  Stop: string;
  Read: number;
  Count: number;
  Values: { Key: string; Descriptor: string; Kind: string; State?: string; Desired?: Message; Actual?: Message }[];
  NotReadBack?: string[];
}

export interface Version { App?: string; Version?: string; GitCommit?: string; BuildTime?: number; GoVersion?: string }

export interface Health {
  state: number; start_time?: number; missing?: string[]; unapplied?: string[]; build_version?: string;
  PluginStatus: Record<string, { state: number }>; // 0: INIT
}

// A Failure is an answer with an error status, or none at all (status 0).
export class Failure extends Error {
  constructor(readonly status: number, message: string) { super(plain(message)); }
}

// The difference between the clock of the agent and that of the browser, in milliseconds. Ages
// of states would be wrong without it.
let skew = 0;

// now returns the present time by the clock of the agent, in milliseconds since 1970.
export function now(): number { return Date.now() + skew; }

let onUnauthorized = () => {};

// whenUnauthorized sets the function that is called when the agent asks for a login.
export function whenUnauthorized(f: () => void): void { onUnauthorized = f; }

// ask sends a request. It throws a Failure, also if the agent cannot be reached.
export async function ask(path: string, init?: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...init });
  } catch (err) {
    if ((err as Error).name === "AbortError") throw err;
    throw new Failure(0, "the agent cannot be reached");
  }
  const date = Date.parse(answer.headers.get("Date") ?? "");
  // The header has whole seconds.
  if (!Number.isNaN(date) && Math.abs(date + 500 - now()) > 1500) skew = date + 500 - Date.now();
  if (answer.status === 401) onUnauthorized();
  return answer;
}

// parsed returns the JSON of an answer. It throws a Failure for an error status, except those
// that are expected.
async function parsed<T>(answer: Response, expected: number[]): Promise<T> {
  if (answer.ok || expected.includes(answer.status)) return await answer.json() as T;
  let text = `${answer.status} ${answer.statusText}`;
  try {
    const body = await answer.json() as { Error?: string };
    if (typeof body.Error === "string") text = body.Error;
  } catch { /* it is no JSON: the status has to do */ }
  throw new Failure(answer.status, text);
}

// query returns the arguments of a request as text. Lists become repeated arguments.
export function query(args: Record<string, string | number | boolean | string[] | undefined>): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) {
    if (value === undefined || value === "" || value === false) continue;
    if (Array.isArray(value)) for (const one of value) out.append(name, one);
    else out.append(name, value === true ? "1" : String(value));
  }
  const text = out.toString();
  return text === "" ? "" : "?" + text;
}

// get reads one path.
export async function get<T>(path: string, args: Parameters<typeof query>[0] = {}, signal?: AbortSignal, expected: number[] = []): Promise<T> {
  return parsed<T>(await ask(path + query(args), { signal: signal ?? null }), expected);
}

// post sends a text.
export async function post<T>(path: string, args: Parameters<typeof query>[0], body: string, type: string): Promise<T> {
  return parsed<T>(await ask(path + query(args), { method: "POST", body, headers: { "Content-Type": type } }), []);
}
