// Drift: values that differ from the declared ones. The agent reads the whole system for it,
// so it is read only on request.
import { useState } from "preact/hooks";
import { get, type Drift as Result } from "./api";
import { Changes, KeyLink, Problem, State } from "./parts";
import { Cell, useCell } from "./state";
import { clock, count, duration, exactly, plain } from "./text";

// The last result stays while other views are shown.
const last = new Cell<Result | undefined>(undefined);

export function Drift() {
  const d = useCell(last);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const check = async () => {
    setBusy(true);
    setError(undefined);
    try {
      last.set(await get<Result>("drift"));
    } catch (err) {
      setError(err as Error);
    }
    setBusy(false);
  };
  return (
    <div class="view scroll">
      <div class="bar">
        <h2>Drift</h2>
        <button type="button" class="main" disabled={busy} onClick={() => void check()}>{busy ? "Reading the system…" : "Read back and compare"}</button>
        <span class="total" role="status">
          {d ? <><b class="num">{count(d.Count)}</b> of <span class="num">{count(d.Read)}</span> values differ from the declared ones, at <span class="num">{clock(d.Stop)}</span> within {duration(exactly(d.Stop) - exactly(d.Start))}</> : "Nothing is changed. agentctl config resync repairs differences."}
        </span>
      </div>
      <Problem error={error} />
      {d?.NotReadBack?.map((e, i) => <p key={i} class="notice bad">not read back: {plain(e)}</p>)}
      {d && d.Count === 0 && !d.NotReadBack ? <p class="notice">Nothing to do.</p> : null}
      {d ? (
        <ol class="operations">
          {d.Values.slice(0, 500).map((v) => (
            <li key={v.Key}>
              <span class={`verb k-${v.Kind}`}>{v.Kind}</span><KeyLink of={v.Key} /><span class="move">{v.State ? <State name={v.State} /> : null} {v.Descriptor}</span>
              {v.Kind === "differs" ? <Changes was={v.Desired} is={v.Actual} /> : null}
            </li>
          ))}
          {d.Values.length > 500 ? <li class="dim">and {count(d.Values.length - 500)} more</li> : null}
        </ol>
      ) : null}
    </div>
  );
}
