// The theme: that of the system, or one that the person has chosen.
import { Cell } from "./state";

const names = ["system", "dark", "light"];

// saved returns the choice of an earlier visit. A browser may forbid to keep one.
function saved(): string {
  try {
    const name = localStorage.getItem("keyplane-theme") ?? "";
    return names.includes(name) ? name : "system";
  } catch { return "system"; }
}

export const theme = new Cell(saved());

function apply(): void {
  const name = theme.get();
  if (name === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = name;
}
apply();

// nextTheme switches to the next theme, and keeps it for later visits.
export function nextTheme(): void {
  theme.set(names[(names.indexOf(theme.get()) + 1) % names.length]!);
  apply();
  try { localStorage.setItem("keyplane-theme", theme.get()); } catch { /* only this visit */ }
}
