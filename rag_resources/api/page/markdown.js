// Markdown of notes and answers as elements, by markdown-it: HTML in it stays text, links are checked.

import "./markdown-it.min.mjs";
import { make } from "./words.js";

const reader = globalThis.markdownit({ html: false }).disable("image");
const [START, END] = ["\uE000", "\uE001"];

/** Return the elements of a text; the characters from `start` to `end` are marked. */
export function rendered(text, { start = 0, end = 0 } = {}) {
  // Offsets count characters (code points), JavaScript's strings UTF-16 units.
  const characters = Array.from(text.replace(/[\uE000\uE001]/gu, " "));
  const part = (from, to) => characters.slice(from, to).join("");
  if (start >= end) return elements(characters.join(""));
  const before = part(0, start);
  // The signs that begin a line, and the bar that ends one of a table, must stay outside the mark.
  const signs = /(?:^|\n)$/u.test(before) ? /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+|\|[ \t]*)*/u.exec(part(start, end))[0].length : 0;
  const last = /[\s|]*$/u.exec(part(start + signs, end))[0].length;
  const marked = elements(before + part(start, start + signs) + START + part(start + signs, end - last) + END + part(end - last));
  const found = marked.textContent;
  if (!found.includes(START) || !found.includes(END)) return plain(part(0, start), part(start, end), part(end));
  return mark(marked);
}

/** Return the elements of a text without paragraphs, as within a sentence. */
export function inline(text) {
  return nodes(reader.renderInline(text));
}

function elements(text) {
  return nodes(reader.render(text));
}

function nodes(html) {
  const fragment = document.createDocumentFragment();
  fragment.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  for (const link of fragment.querySelectorAll("a")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
  return fragment;
}

function plain(before, cited, after) {
  const fragment = document.createDocumentFragment();
  fragment.append(make("div", { className: "as-written" }, before, make("mark", { tabIndex: -1 }, cited), after));
  return fragment;
}

/** Put what stands between both signs into marks, one for each run of text. */
function mark(fragment) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  let isInside = false;
  for (const node of texts) {
    const pieces = node.data.split(/([\uE000\uE001])/u).flatMap((piece) => {
      if (piece === START || piece === END) isInside = piece === START;
      else if (piece) return [isInside && piece.trim() ? make("mark", { tabIndex: -1 }, piece) : piece];
      return [];
    });
    node.replaceWith(...pieces);
  }
  return fragment;
}
