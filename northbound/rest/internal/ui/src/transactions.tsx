// The history of transactions, and one of them with its plan, execution and times.
import { useEffect, useState } from "preact/hooks";
import { Failure, get, type Operation, type TransactionPage, type TransactionSummary } from "./api";
import { transactions } from "./live";
import { Operations } from "./operations";
import { Problem } from "./parts";
import { useRead } from "./read";
import { Rows } from "./rows";
import { go, here, place, useCell } from "./state";
import { clock, count, duration, exactly, split, type } from "./text";
import { Heads } from "./values";

// what is the text of a transaction: its description, else its first operation.
function what(t: TransactionSummary): string {
  if (t.Description) return t.Description;
  if (!t.First) return "";
  return split(t.First)[1] + (t.Executed > 1 ? `, and ${count(t.Executed - 1)} more` : "");
}

const length = (t: TransactionSummary) => duration(exactly(t.Stop) - exactly(t.Start));

export function Transactions() {
  const { args } = useCell(place);
  const version = useCell(transactions);
  const [total, setTotal] = useState(0);
  return (
    <div class="view">
      <div class="bar"><h2>Transactions</h2><span class="num total" role="status">{count(total)} in the history</span></div>
      <Heads names={["#", "Start", "Took", "Kind", "Ops", "Failed", "About"]} class="txns" />
      <Rows<TransactionSummary> id="transactions" version={version} label="Transactions, the newest first" height={26} class="txns" onTotal={setTotal}
        read={async (offset, limit, signal) => {
          const page = await get<TransactionPage>("scheduler/transactions", { offset, limit }, signal);
          return { total: page.Total, rows: page.Transactions };
        }}
        keyOf={(t) => String(t.SeqNum)} chosen={args.get("txn") ?? undefined}
        choose={(t, byKeyboard) => {
          go(here({ txn: String(t.SeqNum), key: undefined }));
          if (byKeyboard) setTimeout(() => document.getElementById("detail")?.focus());
        }}
        row={(t) => [
          <span class="num">{t.SeqNum}</span>, <span class="num">{clock(t.Start)}</span>, <span class="num">{length(t)}</span>, <span>{type(t)}</span>,
          <span class="num">{count(t.Executed)}</span>, <span class={t.Failed ? "num bad" : "num dim"}>{count(t.Failed)}</span>, <span class="reason" title={what(t)}>{what(t)}</span>,
        ]}
        empty={<>There was no transaction yet.</>} />
    </div>
  );
}

const step = 200; // operations that are read at once

// Transaction is the detail of one transaction. It never changes after its end.
export function Transaction({ seq }: { seq: string }) {
  const version = useCell(transactions);
  const summary = useRead(`transaction ${seq}`, 0, (signal) => find(Number(seq), signal));
  const [list, setList] = useState<"executed" | "planned">("executed");
  const [ops, setOps] = useState<Operation[]>([]);
  const [limit, setLimit] = useState(step);
  useEffect(() => { setOps([]); setLimit(step); setList("executed"); }, [seq]);
  const read = useRead(`operations ${seq} ${list} ${limit}`, 0, (signal) =>
    get<Operation[]>("scheduler/operations", { "seq-num": seq, list, offset: limit - step, limit: step }, signal));
  useEffect(() => {
    if (read.data) setOps((old) => [...old.slice(0, limit - step), ...read.data!]);
  }, [read.data]);
  void version;
  const t = summary.data;
  const n = t ? (list === "executed" ? t.Executed : t.Planned) : 0;
  const show = (which: "executed" | "planned") => { setList(which); setOps([]); setLimit(step); };
  return (
    <aside id="detail" tabIndex={-1} aria-label={`Transaction ${seq}`}>
      <header>
        <h2>Transaction <span class="num">#{seq}</span></h2>
        <button type="button" class="quiet close" title="Close (Esc)" onClick={() => go(here({ txn: undefined }))}>close</button>
      </header>
      <Problem error={summary.error} />
      {t ? (
        <>
          {t.Description ? <p>{t.Description}</p> : null}
          <dl class="times">
            <dt>Kind</dt><dd>{t.RetryAttempt ? <>retry #{t.RetryAttempt} for <a href={here({ txn: String(t.RetryForTxn ?? 0) })}>{t.RetryForTxn ?? 0}</a></> : type(t)}</dd>
            <dt>Start</dt><dd class="num">{clock(t.Start)}</dd>
            <dt>Stop</dt><dd class="num">{clock(t.Stop)}</dd>
            <dt>Took</dt><dd class="num">{length(t)}</dd>
            <dt>Changes</dt><dd class="num">{count(t.Values)}</dd>
            <dt>Failed</dt><dd class={t.Failed ? "num bad" : "num"}>{count(t.Failed)}</dd>
            {t.NotReadBack ? <><dt>Not read back</dt><dd class="num bad">{count(t.NotReadBack)}</dd></> : null}
          </dl>
          <div class="tabs" role="group" aria-label="Operations">
            <button type="button" aria-pressed={list === "executed"} onClick={() => show("executed")}>Execution <span class="num">{count(t.Executed)}</span></button>
            <button type="button" aria-pressed={list === "planned"} onClick={() => show("planned")}>Plan <span class="num">{count(t.Planned)}</span></button>
          </div>
          <Problem error={read.error} />
          {n === 0 ? <p class="dim">{list === "planned" ? "No plan was made in advance: simulation is off." : "No operation was needed."}</p> : null}
          <Operations all={ops} />
          {ops.length < n && !read.busy ? <button type="button" onClick={() => setLimit(limit + step)}>{count(Math.min(step, n - ops.length))} more of {count(n)}</button> : null}
        </>
      ) : summary.error ? null : <p class="notice">Reading…</p>}
    </aside>
  );
}

// find returns one transaction. Numbers grow with the history, so its place can be computed;
// transactions that overlap may be a few places away.
async function find(seq: number, signal: AbortSignal): Promise<TransactionSummary> {
  const newest = await get<TransactionPage>("scheduler/transactions", { limit: 1 }, signal);
  const guess = Math.max(0, (newest.Transactions[0]?.SeqNum ?? 0) - seq - 50);
  const near = await get<TransactionPage>("scheduler/transactions", { offset: guess, limit: 200 }, signal);
  const found = near.Transactions.find((t) => t.SeqNum === seq);
  if (!found) throw new Failure(404, `the history has no transaction #${seq}`);
  return found;
}
