// Earlier answers, kept in this browser for the present key only; copied and exported as Markdown.

import { inline, rendered } from "./markdown.js";
import { me } from "./key.js";
import { announce, byId, day, make, _ } from "./words.js";

const MOST = 100;

const place = () => `rag-history ${me?.tenant ?? ""} ${me?.keyId ?? ""}`;

function kept() {
  try {
    return JSON.parse(localStorage.getItem(place())) || [];
  } catch {
    return [];
  }
}

/** Keep an answer: its question, its text as Markdown and the names of its sources. */
export function keep(question, answer, sources) {
  const turns = [...kept(), { question, answer, sources, at: new Date().toISOString() }].slice(-MOST);
  try {
    localStorage.setItem(place(), JSON.stringify(turns));
  } catch {
    // The browser keeps nothing, or has no room: the page works without.
  }
}

/** Return an answer as Markdown. */
export function asMarkdown({ question, answer, sources }) {
  return [`## ${question}`, answer, sources.map((source, number) => `${number + 1}. ${source}`).join("\n")].filter(Boolean).join("\n\n");
}

export async function copy(turn) {
  try {
    await navigator.clipboard.writeText(asMarkdown(turn));
    announce(_("Copied."));
  } catch {
    announce(_("The browser does not let this page copy."));
  }
}

function show() {
  const turns = kept().reverse();
  byId("history-list").replaceChildren(
    ...turns.map((turn) => make("details", {}, make("summary", {}, turn.question, " ", make("span", { className: "where" }, day(turn.at))), make("div", { className: "text" }, rendered(turn.answer)), make("ol", {}, ...turn.sources.map((source) => make("li", {}, inline(source)))))),
  );
  byId("history-none").hidden = turns.length > 0;
  byId("history-export").disabled = byId("history-delete").disabled = !turns.length;
}

export function beginHistory() {
  const dialog = byId("history");
  byId("history-open").addEventListener("click", () => {
    show();
    dialog.showModal();
  });
  byId("history-close").addEventListener("click", () => dialog.close());
  byId("history-delete").addEventListener("click", () => {
    localStorage.removeItem(place());
    show();
  });
  byId("history-export").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([kept().map(asMarkdown).join("\n\n")], { type: "text/markdown" }));
    make("a", { href: url, download: "historial.md" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
}
