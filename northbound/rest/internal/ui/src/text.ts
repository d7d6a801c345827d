// Texts of numbers, times and keys.

// count writes a number with thin spaces between thousands: columns of them stay legible.
export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

// duration writes milliseconds with one unit: "340 µs", "12 ms", "3.2 s", "4 m".
export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return age(ms);
}

// age writes how long ago something was, with the two largest units from minutes on.
export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return m < 10 ? `${m} m ${s % 60} s` : `${m} m`;
  const h = Math.floor(m / 60);
  if (h < 24) return `${h} h ${m % 60} m`;
  const d = Math.floor(h / 24);
  return d < 10 ? `${d} d ${h % 24} h` : `${d} d`;
}

// exactly parses a time of the API with all its digits, in milliseconds since 1970: Date cuts
// the microseconds, which matter for the durations of transactions.
export function exactly(text: string): number {
  const m = /^(.*?)(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!m) return NaN;
  return Date.parse(m[1]! + m[3]!) + (m[2] ? Number("0" + m[2]) * 1000 : 0);
}

// moment returns a time in milliseconds, or undefined for Go's zero time.
export function moment(text: string | undefined): number | undefined {
  if (!text || text.startsWith("0001-")) return undefined;
  const t = Date.parse(text);
  return Number.isNaN(t) ? undefined : t;
}

// clock writes the local time of day, and the date if it is not today.
export function clock(text: string): string {
  const t = new Date(text);
  const two = (n: number) => String(n).padStart(2, "0");
  const time = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}.${String(t.getMilliseconds()).padStart(3, "0")}`;
  if (t.toDateString() === new Date().toDateString()) return time;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${time}`;
}

// split divides a key into its beginning, which many keys share, and its name.
export function split(key: string): [prefix: string, name: string] {
  const model = /^config\/(?:[^/]+\/)*?v\d+\/[^/]+\//.exec(key);
  if (model && model[0].length < key.length) return [model[0], key.slice(model[0].length)];
  const cut = key.indexOf("/", key.indexOf("/") + 1) + 1;
  return cut > 1 && cut < key.length ? [key.slice(0, cut), key.slice(cut)] : ["", key];
}

// type names the kind of a transaction in the words of agentctl config history.
export function type(t: { TxnType: string; ResyncType?: string; RetryForTxn?: number; RetryAttempt?: number }): string {
  if (t.TxnType === "RetryFailedOps") return `retry #${t.RetryAttempt ?? 0} for ${t.RetryForTxn ?? 0}`;
  if (t.TxnType === "SBNotification") return "status update";
  const resync: Record<string, string> = { FullResync: "config replace", UpstreamResync: "config sync", DownstreamResync: "status sync" };
  return resync[t.ResyncType ?? ""] ?? "config change";
}

// plain is a text of an error without the forms that the agent has for programs, as agentctl prints it.
export function plain(text: string): string {
  return text.replace(/rpc error: code = \w+ desc = /g, "").replace(/KeyErrors: \[([^]*)\]/g, "these failed: $1").replace(/VPPApiError: /g, "VPP says: ").replace(/404 page not found/g, "there is nothing at this path");
}

// The states of values, the worst first. Problems are declared values that are not applied.
export const problems = ["FAILED", "RETRYING", "INVALID", "UNIMPLEMENTED", "MISSING", "PENDING"];
export const states = [...problems, "DISCOVERED", "OBTAINED", "CONFIGURED"];
