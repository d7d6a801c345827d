// The plan of a text that a person pastes or drops: the operations that it would cause.
import { useState } from "preact/hooks";
import { get, post, type Failure, type Plan as Result, type Source } from "./api";
import { sources } from "./live";
import { Operations } from "./operations";
import { Problem } from "./parts";
import { useRead } from "./read";
import { Cell, useCell } from "./state";
import { count, plain } from "./text";

// The text and its plan stay while other views are shown.
const text = new Cell("");
const result = new Cell<Result | undefined>(undefined);

const example = `linuxConfig:
  interfaces:
    - name: veth1
      type: VETH
      mtu: 1500`;

// planned asks for the plan of agentctl apply, or of apply --store. An agent without sources has only declared values.
async function planned(as: string, replace: boolean, body: string): Promise<Result> {
  try {
    return await post<Result>("scheduler/plan", { as: as || "agentctl", new: as === "", add: !replace }, body, "application/yaml");
  } catch (err) {
    if (as !== "" || (err as Failure).status !== 404) throw err;
    return post<Result>("scheduler/plan", { replace }, body, "application/yaml");
  }
}

export function Plan() {
  const body = useCell(text), plan = useCell(result);
  const [as, setAs] = useState("");
  const [replace, setReplace] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const list = useRead("sources", useCell(sources), (signal) => get<Source[]>("sources", {}, signal));
  const ask = async () => {
    setBusy(true);
    setError(undefined);
    try {
      result.set(await planned(as, replace, body));
    } catch (err) {
      result.set(undefined);
      setError(err as Error);
    }
    setBusy(false);
  };
  const load = async (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (!file) return;
    text.set(await file.text());
    result.set(undefined);
  };
  const ops = plan?.Operations ?? [];
  const real = ops.filter((o) => !o.NOOP).length;
  return (
    <div class="view plan">
      <div class="edit">
        <div class="bar">
          <h2>Plan</h2>
          <span title="as root or a member of the group keyplane">changes nothing; agentctl apply FILE does</span>
          <label class="file">Open a file<input type="file" accept=".yaml,.yml,.json,.txt" onChange={(e) => void load(e.currentTarget.files)} /></label>
        </div>
        <textarea id="plan-text" aria-label="Values in YAML or JSON" placeholder={example} spellcheck={false} autocomplete="off" value={body}
          onInput={(e) => text.set(e.currentTarget.value)}
          onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); void load(e.dataTransfer?.files); }}
          onKeyDown={(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void ask(); } }} />
        <div class="bar">
          <button type="button" class="main" disabled={busy || body.trim() === ""} onClick={() => void ask()}>{busy ? "Planning…" : "Plan"}</button>
          <label>as <select value={as} onChange={(e) => setAs(e.currentTarget.value)}>
            <option value="">agentctl apply</option>
            {(list.data ?? []).filter((s) => s.Name !== "agentctl").map((s) => <option key={s.Name} value={s.Name}>values of {s.Name}</option>)}
          </select></label>
          <label><input type="checkbox" checked={replace} onChange={(e) => setReplace(e.currentTarget.checked)} /> replace: the source has no others</label>
        </div>
      </div>
      <div class="outcome scroll" aria-live="polite">
        <Problem error={error} />
        {plan ? (
          <>
            <p class="total">{ops.length === 0 ? "Nothing would change." : <><b class="num">{count(real)}</b> operations, and <span class="num">{count(ops.length - real)}</span> changes of states</>}</p>
            {plan.Invalid?.map((i, n) => (
              <p key={n} class="notice bad">{i.Line ? <span class="num">line {i.Line}: </span> : null}{i.Key ? <b>{i.Key}: </b> : null}{plain(i.Error)}</p>
            ))}
            {plan.Warnings?.map((w, n) => <p key={n} class="notice warn">{w.Line ? <span class="num">line {w.Line}: </span> : null}{w.Key ? <b>{w.Key}: </b> : null}{w.Text}</p>)}
            <Operations all={ops.slice(0, 1000)} />
            {ops.length > 1000 ? <p class="dim">and {count(ops.length - 1000)} more operations</p> : null}
          </>
        ) : error ? null : <p class="notice">Paste values, or drop a file. The plan shows the operations that they would cause; nothing is changed. Ctrl+Enter plans.</p>}
      </div>
    </div>
  );
}
