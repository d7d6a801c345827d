// Differences between two values, field by field.

export interface Change {
  path: string;
  kind: "+" | "-" | "~";
  was?: string;
  is?: string;
}

// fields lists the leaves of a value with their paths: "ipAddresses[0]". Hostile values may be
// deep or wide, so it stops after most leaves.
export function fields(value: unknown, most = 2000): Map<string, string> {
  const out = new Map<string, string>();
  const visit = (v: unknown, path: string, depth: number) => {
    if (out.size >= most) return;
    if (Array.isArray(v) && v.length > 0 && depth < 40) {
      v.forEach((one, i) => visit(one, `${path}[${i}]`, depth + 1));
    } else if (v !== null && typeof v === "object" && !Array.isArray(v) && depth < 40) {
      const entries = Object.entries(v);
      for (const [name, one] of entries) visit(one, path === "" ? name : `${path}.${name}`, depth + 1);
      if (entries.length === 0 && path !== "") out.set(path, "{}");
    } else {
      out.set(path === "" ? "value" : path, shown(v));
    }
  };
  visit(value, "", 0);
  return out;
}

// shown writes a leaf: texts as they are, unless they are empty.
function shown(v: unknown): string {
  if (typeof v === "string") return v === "" ? '""' : v;
  return JSON.stringify(v) ?? "";
}

// isList tells a list of simple values, such as addresses. Its elements are compared by
// content: one address more is one line, and not a shift of all that follow.
function isList(v: unknown): v is (string | number | boolean)[] {
  return Array.isArray(v) && v.every((one) => one === null || typeof one !== "object");
}

// changes lists the differences from one value to another, in the order of the new fields.
export function changes(was: unknown, is: unknown): Change[] {
  const out: Change[] = [];
  const compare = (a: unknown, b: unknown, path: string, depth: number) => {
    if (out.length > 500 || JSON.stringify(a) === JSON.stringify(b)) return;
    if (isList(a ?? []) && isList(b ?? []) && (Array.isArray(a) || Array.isArray(b))) {
      const before = (a ?? []) as unknown[], after = (b ?? []) as unknown[];
      for (const one of before) if (!after.includes(one)) out.push({ path, kind: "-", was: shown(one) });
      for (const one of after) if (!before.includes(one)) out.push({ path, kind: "+", is: shown(one) });
      if (before.length === after.length && before.every((one) => after.includes(one))) {
        out.push({ path, kind: "~", was: JSON.stringify(before), is: JSON.stringify(after) }); // another order
      }
      return;
    }
    if (composite(a) && composite(b) && Array.isArray(a) === Array.isArray(b) && depth < 40) {
      const list = Array.isArray(a);
      for (const name of new Set([...Object.keys(b), ...Object.keys(a)])) {
        const below = list ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
        compare((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], below, depth + 1);
      }
      return;
    }
    if (composite(a) || composite(b)) {
      for (const [at, text] of a === undefined ? [] : fields(a)) out.push({ path: joined(path, at, a), kind: "-", was: text });
      for (const [at, text] of b === undefined ? [] : fields(b)) out.push({ path: joined(path, at, b), kind: "+", is: text });
      return;
    }
    if (a === undefined) out.push({ path, kind: "+", is: shown(b) });
    else if (b === undefined) out.push({ path, kind: "-", was: shown(a) });
    else out.push({ path, kind: "~", was: shown(a), is: shown(b) });
  };
  compare(was ?? {}, is ?? {}, "", 0);
  return out;
}

function composite(v: unknown): v is object { return v !== null && typeof v === "object"; }

// joined is the path of a leaf below a path.
function joined(path: string, at: string, value: unknown): string {
  if (path === "") return at;
  if (!composite(value)) return path;
  return at.startsWith("[") ? path + at : `${path}.${at}`;
}
