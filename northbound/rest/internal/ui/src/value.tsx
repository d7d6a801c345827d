// One value: why it has its state, its fields, its sources, its neighbours and its history.
import { get, type Declaration, type Explanation, type Message, type Revision, type ValueDetails } from "./api";
import { fields } from "./diff";
import { Graph } from "./graph";
import { sources, values } from "./live";
import { Age, Changes, Key, KeyLink, Problem, Section, State } from "./parts";
import { useRead } from "./read";
import { go, here, href, useCell } from "./state";
import { clock, plain, problems } from "./text";

// Value is the detail of a value beside a list.
export function Value({ of }: { of: string }) {
  const version = useCell(values);
  const { data, error } = useRead(`value ${of}`, version, (signal) => get<ValueDetails>("scheduler/value", { key: of }, signal));
  const st = data?.Value;
  return (
    <aside id="detail" tabIndex={-1} aria-label={`Value ${of}`}>
      <header>
        <h2><Key of={of} /></h2>
        <button type="button" class="quiet" title="Copy the key" onClick={() => void navigator.clipboard?.writeText(of)}>copy</button>
        <button type="button" class="quiet close" title="Close (Esc)" onClick={() => go(here({ key: undefined }))}>close</button>
      </header>
      <Problem error={error} />
      {st && data ? (
        <>
          <p class="facts">
            <State name={st.State} />
            {st.State === "NONEXISTENT" ? <span>no source declares it, and the system does not have it</span> : <span>for <Age since={st.Since} /></span>}
            {st.LastOperation ? <span>last operation <b>{st.LastOperation}</b></span> : null}
            {st.Descriptor ? <span>descriptor <b>{st.Descriptor}</b></span> : null}
            {st.Base ? <span>derived from <KeyLink of={st.Base} /></span> : null}
          </p>
          {st.Error ? <pre class="error">{plain(st.Error)}</pre> : null}
          {problems.includes(st.State) || st.State === "NONEXISTENT" ? <Why of={of} version={version} /> : null}
          <Fields desired={data.Desired} actual={data.Actual} invalid={st.State === "INVALID" ? st.Details ?? [] : []} />
          {st.Base || st.State === "NONEXISTENT" ? null : <Sources of={of} />}
          <Graph of={of} details={data} />
          {st.State === "NONEXISTENT" ? null : <History of={of} version={version} />}
        </>
      ) : error ? null : <p class="notice">Reading…</p>}
    </aside>
  );
}

// Why is the explanation of the agent, down to the root.
function Why({ of, version }: { of: string; version: number }) {
  const { data, error } = useRead(`why ${of}`, version, (signal) => get<Explanation>("scheduler/explain", { key: of }, signal));
  return <Section title="Why"><Problem error={error} />{data ? <ul class="why"><Cause e={data} of={of} depth={0} /></ul> : null}</Section>;
}

// Cause is one explanation with its causes. The agent ends cycles; the depth is for hostile
// chains. A root is where somebody can do something.
function Cause({ e, of, depth }: { e: Explanation; of: string; depth: number }) {
  const root = !e.Because?.length && depth > 0 && !e.Text.endsWith(", see above");
  return (
    <li class={root ? "root" : ""}>
      <Linked text={e.Text} of={e.Key && e.Key !== of ? e.Key : undefined} />
      {e.Because && depth < 30 ? <ul>{e.Because.slice(0, 50).map((c, i) => <Cause key={i} e={c} of={of} depth={depth + 1} />)}</ul> : null}
    </li>
  );
}

// Linked is a text in which a key is a link.
function Linked({ text, of }: { text: string; of: string | undefined }) {
  const at = of ? text.indexOf(of) : -1;
  if (!of || at < 0) return <>{text}</>;
  return <>{text.slice(0, at)}<a href={here({ key: of })}>{of}</a>{text.slice(at + of.length)}</>;
}

// Fields shows the desired and the actual fields side by side, if they differ.
function Fields({ desired, actual, invalid }: { desired?: Message; actual?: Message; invalid: string[] }) {
  const want = fields(desired?.ProtoMsgData), have = fields(actual?.ProtoMsgData);
  if (!desired && !actual) return null;
  if (want.has("value") && want.size === 1) want.delete("value"); // an empty message
  if (have.has("value") && have.size === 1) have.delete("value");
  const paths = [...new Set([...want.keys(), ...have.keys()])];
  const both = desired !== undefined && actual !== undefined;
  const differ = both && paths.some((p) => want.get(p) !== have.get(p));
  const most = 400;
  // Paths of invalid fields are written as in the .proto files.
  const wrong = new Set(invalid.map((p) => p.replaceAll("_", "").toLowerCase()));
  return (
    <Section title="Fields" note={both ? (differ ? "declared and actual differ" : "actual is as declared") : desired ? "declared; there is no actual value" : "actual; nobody declares it"}>
      {paths.length === 0 ? <p class="dim">It has no fields.</p> : (
        <table class="fields">
          {differ ? <thead><tr><th>Field</th><th>Declared</th><th>Actual</th></tr></thead> : null}
          <tbody>
            {paths.slice(0, most).map((p) => (
              <tr key={p} class={differ && want.get(p) !== have.get(p) || wrong.has(p.toLowerCase()) ? "differs" : ""}>
                <th scope="row">{p}</th>
                <td>{(desired ? want : have).get(p) ?? <span class="dim">–</span>}</td>
                {differ ? <td>{have.get(p) ?? <span class="dim">–</span>}</td> : null}
              </tr>
            ))}
            {paths.length > most ? <tr><td colSpan={3} class="dim">and {paths.length - most} more fields</td></tr> : null}
          </tbody>
        </table>
      )}
    </Section>
  );
}

// Sources are the sources that declare the key.
function Sources({ of }: { of: string }) {
  const version = useCell(sources) + useCell(values);
  const { data, error } = useRead(`declarations ${of}`, version, (signal) => get<Declaration[]>("sources", { key: of }, signal));
  return (
    <Section title="Sources">
      <Problem error={error} />
      {data && data.length === 0 ? <p class="dim">No source declares it.</p> : null}
      {data && data.length > 0 ? (
        <table>
          <thead><tr><th>Source</th><th class="num">Priority</th><th>State</th><th>Takes effect</th></tr></thead>
          <tbody>
            {data.map((d) => (
              <tr key={d.Source}>
                <td>{d.Source}</td><td class="num">{d.Priority}</td>
                <td>{d.State}{d.Remembered ? ", saved" : ""}{d.Doubted ? ", doubted" : ""}{d.Error ? <div class="bad">{plain(d.Error)}</div> : null}</td>
                <td>{d.Wins ? <b>yes</b> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </Section>
  );
}

// History lists the revisions of the value, the newest first, with what each has changed.
function History({ of, version }: { of: string; version: number }) {
  const { data, error } = useRead(`history ${of}`, version, (signal) => get<Revision[]>("scheduler/key-timeline", { key: of }, signal));
  const all = (data ?? []).map((r, i) => ({ r, before: data![i - 1] })).reverse();
  const most = 50;
  return (
    <Section title="History" note={data ? `${data.length} ${data.length === 1 ? "revision" : "revisions"}` : undefined}>
      <Problem error={error} />
      <ol class="history">
        {all.slice(0, most).map(({ r, before }, i) => {
          const txn = /^TXN-(\d+)$/.exec(r.Flags["last-update"] ?? "");
          return (
            <li key={all.length - i}>
              <span class="when num">{r.Since.startsWith("0001-") ? "earlier" : clock(r.Since)}</span>
              <State name={r.Flags["value-state"] ?? ""} />
              {txn ? <a class="num" href={href("transactions", { txn: txn[1]! })}>#{txn[1]}</a> : <span />}
              {r.Flags["error"] ? <div class="bad">{plain(r.Flags["error"])}</div> : null}
              {before?.Value && r.Value ? <Changes was={before.Value} is={r.Value} /> : null}
            </li>
          );
        })}
        {all.length > most ? <li class="dim">and {all.length - most} older revisions</li> : null}
      </ol>
    </Section>
  );
}
