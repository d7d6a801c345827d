// Sources of declared values, and connections to what is programmed.
import { get, type Connection, type Health, type Source } from "./api";
import { connections, sources, values } from "./live";
import { Age, Problem, Section } from "./parts";
import { useRead } from "./read";
import { href, useCell } from "./state";
import { count, duration, plain } from "./text";

export function Sources() {
  const version = useCell(sources);
  const links = useCell(connections);
  const list = useRead("sources", version, (signal) => get<Source[]>("sources", {}, signal));
  const health = useRead("health", version + useCell(values), (signal) => get<Health>("readiness", {}, signal, [500]));
  const of = Object.entries(links).flat().join();
  const lines = useRead(`connections ${of}`, version, (signal) => get<Connection[]>("scheduler/connections", {}, signal));
  return (
    <div class="view scroll">
      <Section title="Sources" note="the highest priority takes effect">
        <Problem error={list.error} />
        {list.data && list.data.length === 0 ? <p class="dim">The agent has no sources.</p> : null}
        {list.data && list.data.length > 0 ? (
          <table class="wide">
            <thead><tr>
              <th>Source</th><th class="num">Priority</th><th>State</th><th class="num">Since</th><th class="num">Keys</th><th class="num">Refused</th>
              <th class="num">Saved</th><th class="num">Doubted</th><th class="num">Waiting</th><th class="num">Revision</th><th>Error, and problems</th>
            </tr></thead>
            <tbody>{list.data.map((s) => <Row key={s.Name} s={s} />)}</tbody>
          </table>
        ) : null}
      </Section>
      <Section title="Connections">
        <Problem error={lines.error} />
        {lines.data && lines.data.length === 0 ? <p class="dim">No system that can be disconnected is programmed.</p> : null}
        {lines.data && lines.data.length > 0 ? (
          <table class="wide">
            <thead><tr><th>Connection</th><th>State</th><th class="num">Since</th><th>Reason, and what is unknown</th></tr></thead>
            <tbody>{lines.data.map((c) => <Line key={c.Name} c={c} />)}</tbody>
          </table>
        ) : null}
      </Section>
      {health.data ? (
        <Section title="Readiness">
          <p><Mark ok={health.data.state === 1}>{health.data.state === 1 ? "ready" : "not ready"}</Mark></p>
          <ul class="lines">{(health.data.missing ?? []).map((l, i) => <li key={i}>{l}</li>)}</ul>
          {health.data.unapplied?.length ? <p class="dim">Some values cannot be applied, whatever the agent does: <a href={href("problems")}>Problems</a></p> : null}
        </Section>
      ) : null}
    </div>
  );
}

// Line is one connection. Kinds of values with one reason are on one line.
function Line({ c }: { c: Connection }) {
  const unknown = new Map<string, string[]>();
  for (const u of c.Unknown ?? []) unknown.set(u.Reason, [...unknown.get(u.Reason) ?? [], u.Descriptor]);
  return (
    <tr>
      <td><b>{c.Name}</b></td><td><Mark ok={c.State === "READY"}>{c.State}</Mark></td><td data-of="since" class="num"><Age since={c.Since} /></td>
      <td>
        {c.Error ? <div class="bad">{plain(c.Error)}</div> : null}
        {[...unknown].map(([why, kinds]) => <div key={why} class="bad">nobody knows which values exist of {kinds.join(", ")}: {plain(why)}</div>)}
      </td>
    </tr>
  );
}

function Row({ s }: { s: Source }) {
  // In a narrow window the cells flow, and each shows the name of its column.
  const n = (of: string, v: number | undefined, bad = false) => <td data-of={of} class={v ? (bad ? "num bad" : "num") : "num dim"}>{count(v ?? 0)}</td>;
  return (
    <tr>
      <td><b>{s.Name}</b></td><td data-of="priority" class="num">{s.Priority}</td>
      <td><Mark ok={s.State === "synced"}>{s.State}{s.State === "syncing" && s.Listed ? `, ${count(s.Listed)} keys so far` : ""}</Mark></td>
      <td data-of="since" class="num"><Age since={s.Since} /></td>
      {n("keys", s.Keys)}{n("refused", s.Refused, true)}{n("saved", s.Remembered)}{n("doubted", s.Doubted, true)}
      <td data-of="waiting" class={s.Waiting ? "num" : "num dim"}>{count(s.Waiting ?? 0)}{s.Lag ? `, ${duration(s.Lag / 1e6)}` : ""}</td>
      <td data-of="revision" class="num dim">{s.Revision ? count(s.Revision) : "–"}</td>
      <td>
        {s.Error ? <div class="bad">{plain(s.Error)}</div> : null}
        {(s.Faults ?? []).map((f) => <div key={f} class="bad">{plain(f)}</div>)}
        {!s.Error && s.LastError ? <div class="dim">last interruption <Age since={s.LastErrorAt} /> ago: {plain(s.LastError)}</div> : null}
      </td>
    </tr>
  );
}

// Mark is a word with a mark of its own colour.
export function Mark({ ok, children }: { ok: boolean; children: preact.ComponentChildren }) {
  return <span class={`mark ${ok ? "s-configured" : "s-pending"}`}><i aria-hidden="true" />{children}</span>;
}
