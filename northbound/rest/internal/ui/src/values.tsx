// Lists of values: the problems, and all values with a search.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type ListedValue, type ValuePage } from "./api";
import { counts, values } from "./live";
import { Age, Key, State } from "./parts";
import { Rows } from "./rows";
import { go, here, href, place, useCell } from "./state";
import { count, plain, problems, split, states } from "./text";

// choose shows a value beside the list. By keyboard the focus follows.
export function choose(key: string, byKeyboard: boolean): void {
  go(here({ key }));
  if (byKeyboard) setTimeout(() => document.getElementById("detail")?.focus());
}

// reason is the text of a row: the roots of a value that waits, else its own error. Keys are
// short: a row has little room, and the detail has them in full.
function reason(v: ListedValue): string {
  if (v.Roots && v.Roots.length > 0) return plain(v.Roots.map((r) => r.Key ? r.Text.replace(r.Key, () => split(r.Key!)[1]) : r.Text).join("; "));
  const named = v.State === "INVALID" && v.Error; // Details are the fields, which the error names
  return plain([v.Error, ...(named ? [] : v.Details ?? [])].filter(Boolean).join("; "));
}

// Problems lists the values that are not as declared, the worst first, with their root causes in full.
export function Problems() {
  const { args } = useCell(place);
  const version = useCell(values);
  const now = useCell(counts);
  const present = problems.filter((s) => (now[s] ?? 0) > 0);
  const chosen = args.getAll("state").filter((s) => problems.includes(s));
  const wanted = chosen.length > 0 ? chosen : problems;
  return (
    <div class="view">
      <div class="bar">
        <h2>Not configured</h2>
        <States all={present} counts={now} chosen={chosen} />
      </div>
      <Heads names={["State", "Value, and the reason down to the root", "Since"]} class="problems" />
      <Rows<ListedValue> id={"problems " + wanted.join()} version={version} label="Values that are not configured, the worst first" height={46} grows class="problems"
        read={async (offset, limit, signal) => {
          const page = await get<ValuePage>("scheduler/values", { state: wanted, sort: "trouble", why: true, offset, limit }, signal);
          return { total: page.Total, rows: page.Values };
        }}
        keyOf={(v) => v.Key} chosen={args.get("key") ?? undefined} choose={(v, k) => choose(v.Key, k)}
        row={(v) => [<State name={v.State} />, <Key of={v.Key} />, <Age since={v.Since} />, <span class="reason">{reason(v)}</span>]}
        empty={<>Every declared value is configured.</>} />
    </div>
  );
}

// Values lists all values, or those that a search finds.
export function Values() {
  const { args } = useCell(place);
  const version = useCell(values);
  const search = args.get("search") ?? "";
  const chosen = args.getAll("state");
  const [found, setFound] = useState<{ total: number; states: Record<string, number> }>({ total: 0, states: {} });
  const all = Object.values(useCell(counts)).reduce((a, b) => a + b, 0);
  return (
    <div class="view">
      <div class="bar">
        <Search value={search} />
        <span class="num total" role="status">{count(found.total)} of {count(all)}</span>
        <States all={states.filter((s) => (found.states[s] ?? 0) > 0 || chosen.includes(s))} counts={found.states} chosen={chosen} />
      </div>
      <Heads names={["State", "Value", "Last operation", "Since"]} class="values" />
      <Rows<ListedValue> id={`values ${search} ${chosen.join()}`} version={version} label="Values" height={26} class="values"
        read={async (offset, limit, signal) => {
          const page = await get<ValuePage>("scheduler/values", { search, state: chosen, offset, limit }, signal);
          setFound({ total: page.Total, states: page.States });
          return { total: page.Total, rows: page.Values };
        }}
        keyOf={(v) => v.Key} chosen={args.get("key") ?? undefined} choose={(v, k) => choose(v.Key, k)}
        row={(v) => [<State name={v.State} />, <Key of={v.Key} />, <span class="op">{v.LastOperation ?? ""}</span>, <Age since={v.Since} />]}
        empty={search || chosen.length ? <>No value fits.</> : <>The agent knows no values.</>} />
    </div>
  );
}

// Heads are the titles of columns.
export function Heads({ names, class: of }: { names: string[]; class: string }) {
  return <div class={`heads ${of}`} aria-hidden="true">{names.map((n) => <span key={n}>{n}</span>)}</div>;
}

// Search is the field that / reaches. It changes the address when the person pauses.
function Search({ value }: { value: string }) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  // The address follows the field. Only another address, such as that of the back button, changes
  // the field: otherwise it would lose what was typed meanwhile.
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  const search = (next: string) => {
    sent.current = next;
    go(here({ search: next, key: undefined }), true);
  };
  return (
    <input id="search" type="search" placeholder="Search keys ( / )" aria-label="Search keys: all words must be in the key" value={text} spellcheck={false} autocomplete="off"
      onInput={(e) => {
        const next = e.currentTarget.value;
        setText(next);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => search(next), 150);
      }}
      onKeyDown={(e) => {
        if (e.key !== "ArrowDown" && e.key !== "Enter") return;
        e.preventDefault();
        clearTimeout(timer.current);
        search(e.currentTarget.value);
        document.querySelector<HTMLElement>(".rows")?.focus();
      }} />
  );
}

// States are switches for the states of a list.
function States({ all, counts, chosen }: { all: string[]; counts: Record<string, number>; chosen: string[] }) {
  return (
    <div class="chips" role="group" aria-label="Only these states">
      {all.map((s) => {
        const on = chosen.includes(s);
        return (
          <button key={s} type="button" class={`chip s-${s.toLowerCase()}`} aria-pressed={on}
            onClick={() => go(here({ state: on ? chosen.filter((c) => c !== s) : [...chosen, s] }), true)}>
            <i aria-hidden="true" />{s} <span class="num">{count(counts[s] ?? 0)}</span>
          </button>
        );
      })}
    </div>
  );
}

// Counts is the strip below the header: the number of values by state. Each leads to its values.
export function Counts() {
  const now = useCell(counts);
  return (
    <ul class="counts" aria-label="Values by state">
      {[...states].reverse().filter((s) => (now[s] ?? 0) > 0).map((s) => (
        <li key={s}><a class={`s-${s.toLowerCase()}`} href={href("values", { state: s })}><i aria-hidden="true" />{s} <b class="num">{count(now[s]!)}</b></a></li>
      ))}
    </ul>
  );
}
