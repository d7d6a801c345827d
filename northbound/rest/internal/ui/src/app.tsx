// The agent's page: header, views, details and keys.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, get, now, whenUnauthorized, type Health, type Version } from "./api";
import { Drift } from "./drift";
import { close, connections, counts, heard, label, line, open, reached, sources, why } from "./live";
import { Plan } from "./plan";
import { useRead } from "./read";
import { Mark, Sources } from "./sources";
import { Cell, go, here, href, place, useCell, useSecond } from "./state";
import { age, clock, count, problems } from "./text";
import { nextTheme, theme } from "./theme";
import { Transaction, Transactions } from "./transactions";
import { Value } from "./value";
import { Counts, Problems, Values } from "./values";

const views = [
  { name: "problems", title: "Problems", view: Problems },
  { name: "values", title: "Values", view: Values },
  { name: "transactions", title: "Transactions", view: Transactions },
  { name: "sources", title: "Sources", view: Sources },
  { name: "drift", title: "Drift", view: Drift },
  { name: "plan", title: "Plan", view: Plan },
];

const login = new Cell(false);
const help = new Cell(false);

function App() {
  const { view, args } = useCell(place);
  const shown = views.find((v) => v.name === view) ?? views[0]!;
  const key = args.get("key"), txn = shown.name === "transactions" ? args.get("txn") : null;
  const asks = useCell(login);
  const View = shown.view;
  useEffect(() => { document.title = `${label.get() || "keyplane"}: ${shown.title}`; }, [shown, useCell(label)]);
  if (asks) return <Login />;
  return (
    <>
      <Header current={shown.name} />
      <Gone />
      <Counts />
      <main class={key || txn ? "with-detail" : ""}>
        <View key={shown.name} />
        {key ? <Value key={key} of={key} /> : txn ? <Transaction key={txn} seq={txn} /> : null}
      </main>
      <Help />
    </>
  );
}

// Gone says that the agent does not answer, and how old the page is.
function Gone() {
  const state = useCell(line), at = useCell(heard);
  if (state !== "lost") return null;
  return (
    <p class="gone" role="alert">
      The agent is gone. {at ? <>It has not answered since <span class="num">{clock(new Date(at).toISOString())}</span>, and what you see is from then.</> : "It does not answer."}
    </p>
  );
}

function Header({ current }: { current: string }) {
  const name = useCell(label), state = useCell(line), reason = useCell(why), now = useCell(counts);
  const version = useRead("version", 0, (signal) => get<Version>("info/version", {}, signal));
  const n = problems.reduce((sum, s) => sum + (now[s] ?? 0), 0);
  return (
    <header class="top">
      <h1 title="The agent's label">{name || "agent"}</h1>
      <span class="about" title={version.data?.GitCommit ?? ""}>{[version.data?.App, version.data?.Version].filter(Boolean).join(" ")}</span>
      <Uptime />
      <nav aria-label="Views">
        {views.map((v, i) => (
          <a key={v.name} href={href(v.name)} aria-current={v.name === current ? "page" : undefined} title={`${v.title} (${i + 1})`}>
            {v.title}{v.name === "problems" && n > 0 ? <span class="badge num">{count(n)}</span> : null}
          </a>
        ))}
      </nav>
      <Links />
      <span class={`line ${state}`} role="status" title={reason}><i aria-hidden="true" />{{ connecting: "connecting", live: "live", lost: "gone", busy: "not live", refused: "no permission" }[state]}</span>
      <button type="button" class="quiet" title="Theme (t)" onClick={nextTheme}>theme: {useCell(theme)}</button>
      <button type="button" class="quiet" title="Keys (?)" aria-label="Keys" onClick={() => help.set(true)}>?</button>
    </header>
  );
}

// Links names the connections that are lost, if there are any.
function Links() {
  const all = useCell(connections);
  const lost = Object.keys(all).filter((n) => !all[n]).sort();
  return lost.length === 0 ? null : <Lost names={lost} />;
}

// Lost names connections that are lost, except those that were never there and that no value needs: the agent's health
// calls them INIT, or does not know them. A value that is PENDING may need one.
function Lost({ names }: { names: string[] }) {
  const pending = useCell(counts)["PENDING"] ?? 0;
  const { data, error } = useRead(`lost ${names.join()}`, pending, (signal) => get<Health>("readiness", {}, signal, [500]));
  const matters = (name: string) => error !== undefined || reached.has(name) || (data?.PluginStatus[name]?.state ?? 0) !== 0;
  const missed = names.filter(matters);
  if (missed.length === 0) return null;
  return <a class="lost" href={href("sources")}><Mark ok={false}>not READY: {missed.join(", ")}</Mark></a>;
}

function Uptime() {
  useSecond();
  const health = useRead("start", useCell(sources), (signal) => get<Health>("liveness", {}, signal, [404]));
  const start = health.data?.start_time;
  if (!start) return null;
  return <span class="about" title={new Date(start * 1000).toISOString()}>up <span class="num uptime">{age(now() - start * 1000)}</span></span>;
}

// Login asks for a name and a password, and gets a cookie that scripts cannot read. Agents with
// basic authentication make the browser ask.
function Login() {
  const [error, setError] = useState("");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    try {
      const answer = await ask("authenticate", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ username: form.get("username"), password: form.get("password") }),
      });
      if (answer.ok) {
        login.set(false);
        close();
        open();
        return;
      }
      const body = await answer.json() as { Error?: string };
      setError(answer.status === 404 ? "This agent has no logins. Reload the page, and give name and password to the browser." : body.Error ?? answer.statusText);
    } catch (err) {
      setError((err as Error).message);
    }
  };
  return (
    <form class="login" onSubmit={(e) => void submit(e)}>
      <h1>{label.get() || "keyplane agent"}</h1>
      <label>Name <input name="username" autocomplete="username" required autofocus /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      <button class="main">Log in</button>
      <p>To show anything the page needs a token, which the users of http.conf get for their name and password.</p>
      {error ? <p class="bad" role="alert">{error}</p> : null}
    </form>
  );
}

const readOnly = "This page shows everything and changes nothing. To change something, edit a store, or run agentctl apply on this host as root or a member of the group keyplane.";

const keys: [string, string][] = [
  ["1 … 6", "the views"], ["/", "search values"], ["↑ ↓ or k j", "move in a list"], ["PgUp PgDn Home End", "move far in a list"],
  ["Enter", "open the row"], ["Esc", "close the detail, then leave the field"], ["Tab", "the next part of the page"], ["Ctrl+Enter", "plan the text"], ["t", "theme: system, dark, light"], ["?", "this help"],
];

// Help is the list of keys. The browser keeps the focus within a modal dialog.
function Help() {
  const shown = useCell(help);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (shown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [shown]);
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => help.set(false)} onClick={(e) => { if (e.target === dialog.current) help.set(false); }}>
      <p>{readOnly}</p>
      <h2>Keys</h2>
      <dl>{keys.map(([k, text]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{text}</dd></div>)}</dl>
      <button type="button" class="main" onClick={() => help.set(false)}>Close</button>
    </dialog>
  );
}

// typing tells a field in which letters are text.
function typing(e: KeyboardEvent): boolean {
  const t = e.target;
  return t instanceof HTMLTextAreaElement || t instanceof HTMLSelectElement || t instanceof HTMLInputElement && t.type !== "checkbox";
}

// escape closes the innermost thing that is open, and returns the focus to the list.
function escape(e: KeyboardEvent): void {
  const { args } = place.get();
  if (typing(e)) (e.target as HTMLElement).blur();
  else if (args.get("key")) go(here({ key: undefined }));
  else if (args.get("txn")) go(here({ txn: undefined }));
  document.querySelector<HTMLElement>(".rows")?.focus();
}

// focusAfterKey moves the focus when the key is released. A field that gets it earlier would
// also get the letter, or more of them while the key is held.
function focusAfterKey(selector: string): void {
  addEventListener("keyup", () => setTimeout(() => document.querySelector<HTMLElement>(selector)?.focus()), { once: true });
}

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || login.get() || help.get()) return;
  if (e.key === "Escape") return escape(e);
  if (typing(e)) return;
  const view = views[Number(e.key) - 1];
  if (view) {
    go(href(view.name));
    focusAfterKey(".rows, #plan-text");
  } else if (e.key === "/") {
    if (place.get().view !== "values") go(href("values"));
    focusAfterKey("#search");
  } else if (e.key === "?") help.set(true);
  else if (e.key === "t") nextTheme();
  else return;
  e.preventDefault();
});

whenUnauthorized(() => { close(); login.set(true); });
render(<App />, document.getElementById("app")!);
open();
