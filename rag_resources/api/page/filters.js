// What a question is restricted to: a document, a tag, a period.

import { json } from "./api.js";
import { me } from "./key.js";
import { byId, make, _ } from "./words.js";

const FIELDS = ["filter-file", "filter-tag", "filter-from", "filter-until"];

function options(id, entries) {
  const select = byId(id);
  const chosen = select.value;
  select.replaceChildren(select.options[0], ...entries.map(([value, text]) => make("option", { value }, text)));
  select.value = entries.some(([value]) => value === chosen) ? chosen : "";
}

function count() {
  const given = FIELDS.filter((id) => byId(id).value).length;
  byId("filters-summary").textContent = given ? _("Filters ({count})", { count: given }) : _("Filters");
}

/** Offer the documents and tags that the present key shows. */
export async function refreshFilters() {
  const shown = me !== null;
  const none = { tags: [], documents: [] };
  const [tags, files] = await Promise.all([
    shown ? json("/v1/tags").catch(() => none) : none,
    shown ? json("/v1/documents?limit=200").catch(() => none) : none,
  ]);
  options("filter-tag", tags.tags.map(({ tag, notes }) => [tag, `${tag} (${notes})`]));
  options("filter-file", files.documents.filter((file) => file.address && file.status !== "failed").map((file) => [file.address, file.title || file.address]));
  count();
}

/** Return the filters of the next question as the API takes them, and as a reader sees them. */
export function chosenFilters() {
  const value = (id) => byId(id).value;
  const text = (id) => byId(id).selectedOptions[0].textContent;
  const filters = {};
  const words = [];
  if (value("filter-file")) {
    filters.metadata = { file: value("filter-file") };
    words.push(text("filter-file"));
  }
  if (value("filter-tag")) {
    filters.tags = [value("filter-tag")];
    words.push(value("filter-tag"));
  }
  if (value("filter-from")) {
    filters.createdFrom = value("filter-from");
    words.push(`≥ ${value("filter-from")}`);
  }
  if (value("filter-until")) {
    const next = new Date(`${value("filter-until")}T00:00:00Z`);
    next.setUTCDate(next.getUTCDate() + 1); // the day itself is meant too
    filters.createdUntil = next.toISOString().slice(0, 10);
    words.push(`≤ ${value("filter-until")}`);
  }
  return { filters: words.length ? filters : null, words: words.join(" · ") };
}

export function beginFilters() {
  for (const id of FIELDS) byId(id).addEventListener("change", count);
  byId("filters-clear").addEventListener("click", () => {
    for (const id of FIELDS) byId(id).value = "";
    count();
  });
}
