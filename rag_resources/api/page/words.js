// The page's words in its reader's language, from the catalogue; dates and numbers as they write them.

const WORDS = JSON.parse(document.documentElement.dataset.words);

export const language = document.documentElement.lang;

/** Return a message in the reader's language, with its placeholders filled in. */
export function _(message, values = {}) {
  return WORDS[message].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Return a day as the reader writes it, as "29 abr 2025"; the time stamps are in UTC. */
export function day(stamp) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(stamp));
}

/** Say which note it is: its title, else what its source calls it. */
export function noteLabel({ title, externalId, noteId }) {
  return title || (externalId !== noteId && externalId) || _("Untitled note");
}

export function seconds(milliseconds) {
  return new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(milliseconds / 1000);
}

/** Say on which page, or in which cells, and under which headings a passage stands. */
export function placeInWords(place, title = "") {
  // A document without pages, such as a web page, is read as one that nobody can turn to.
  const told = place.parts.filter((part) => !("page" in part) || part.page > 1 || part.boxes.length);
  const parts = told.map((part) => ("page" in part ? _("p. {page}", part) : _("sheet “{sheet}”, {cells}", { sheet: part.sheet, cells: cellRange(part.cells) })));
  const headings = place.headings.join(" › ");
  return [parts.join(", "), title.endsWith(headings) ? "" : headings].filter(Boolean).join(" · ");
}

/** Name cells; of a long list the first and the last. */
function cellRange(cells) {
  return cells.length > 3 ? `${cells[0]} … ${cells.at(-1)}` : cells.join(", ");
}

/** Make an element. Texts of notes and files only ever become text nodes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Say something to a screen reader. */
export function announce(text) {
  byId("status").textContent = text;
}
