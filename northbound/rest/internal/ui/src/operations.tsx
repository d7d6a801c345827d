// Operations of a transaction or a plan.
import type { Operation } from "./api";
import { Changes, KeyLink } from "./parts";
import { plain } from "./text";

// Operations lists operations with the changes of their fields.
export function Operations({ all }: { all: Operation[] }) {
  return (
    <ol class="operations">
      {all.map((o, i) => {
        const flags = [o.IsProperty ? "property" : o.IsDerived ? "derived" : "", o.NOOP && !o.IsProperty ? "nothing is called" : "", o.IsRecreate ? "recreate" : "", o.IsRevert ? "revert" : "", o.IsRetry ? "retry" : ""].filter(Boolean);
        const from = o.PrevState ?? "", to = o.NewState ?? "";
        return (
          <li key={i} class={o.NOOP ? "noop" : ""}>
            <span class={`verb v-${o.Operation.toLowerCase()}`}>{o.Operation}</span>
            <KeyLink of={o.Key} />
            <span class="move"><span class="flags">{flags.join(", ")}</span>{from && from !== to ? <>{from} → </> : null}<span class={`s-${to.toLowerCase()} word`}>{to}</span></span>
            {o.NewErrMsg ? <div class="bad">{plain(o.NewErrMsg)}</div> : null}
            {o.Waits && o.Waits.length > 0 ? <div class="dim">waits for {o.Waits.join(", ")}</div> : null}
            {o.Operation === "UPDATE" || o.Operation === "CREATE" && !o.IsProperty ? <Changes was={o.PrevValue} is={o.NewValue} /> : null}
          </li>
        );
      })}
    </ol>
  );
}
