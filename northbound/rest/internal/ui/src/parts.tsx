// Small parts that several views use.
import type { ComponentChildren } from "preact";
import { changes, type Change } from "./diff";
import { age, moment, split } from "./text";
import { now, type Message } from "./api";
import { here, useSecond } from "./state";

// State is the state of a value: a mark and the word, so that nobody needs to tell colours.
export function State({ name }: { name: string }) {
  return <span class={`state s-${name.toLowerCase()}`}><i aria-hidden="true" />{name}</span>;
}

// Key is a key whose name stands out from the beginning that many keys share.
export function Key({ of }: { of: string }) {
  const [prefix, name] = split(of);
  return <span class="key" title={of}><span class="dim">{prefix}</span><b>{name}</b></span>;
}

// KeyLink opens a value beside the present list.
export function KeyLink({ of }: { of: string }) {
  return <a class="keylink" href={here({ key: of })}><Key of={of} /></a>;
}

// Age is the time since a moment.
export function Age({ since }: { since: string | undefined }) {
  useSecond();
  const t = moment(since);
  if (t === undefined) return <span class="num dim">–</span>;
  return <time class="num" dateTime={since} title={new Date(t).toISOString()}>{age(now() - t)}</time>;
}

// Problem is why something cannot be shown.
export function Problem({ error }: { error: Error | undefined }) {
  return error ? <p class="notice bad" role="alert">{error.message}</p> : null;
}

// Section is a part of a detail with a title.
export function Section({ title, note, children }: { title: string; note?: ComponentChildren; children: ComponentChildren }) {
  return <section><h3>{title}{note === undefined ? null : <span class="note">{note}</span>}</h3>{children}</section>;
}

// Changes are the differences of two values: "~ mtu: 1400 -> 1500".
export function Changes({ was, is }: { was: Message | null | undefined; is: Message | null | undefined }) {
  const all = changes(was?.ProtoMsgData, is?.ProtoMsgData);
  if (all.length === 0) return null;
  const most = 40;
  return (
    <ul class="changes">
      {all.slice(0, most).map((c, i) => <li key={i} class={{ "+": "plus", "-": "minus", "~": "tilde" }[c.kind]}>{line(c)}</li>)}
      {all.length > most ? <li class="dim">and {all.length - most} more</li> : null}
    </ul>
  );
}

// line writes one difference as text.
export function line(c: Change): string {
  switch (c.kind) {
    case "~": return `~ ${c.path}: ${c.was} -> ${c.is}`;
    case "+": return `+ ${c.path}: ${c.is}`;
    default: return `- ${c.path}: ${c.was}`;
  }
}
