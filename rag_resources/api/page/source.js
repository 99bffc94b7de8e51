// What a citation opens: the note at its range, and the page of its document with the cited box.

import { blob, json, Refused } from "./api.js";
import { me } from "./key.js";
import { rendered } from "./markdown.js";
import { byId, day, make, noteLabel, placeInWords, _ } from "./words.js";

const wide = matchMedia("(min-width: 70rem)");
let opener = null;
let wanted = 0;

function notice(text) {
  byId("source-notice").textContent = text;
  byId("source-notice").hidden = !text;
}

async function picture(citation, turn) {
  const { documentId, parts } = citation.place;
  for (const { page, boxes } of parts.filter((part) => "page" in part && part.boxes.length)) {
    const query = new URLSearchParams(boxes.map((box) => ["box", box.map((side) => side.toFixed(2)).join(",")]));
    const image = await blob(`/v1/documents/${documentId}/pages/${page}?${query}`);
    if (turn !== wanted) return;
    const url = URL.createObjectURL(image);
    const alt = _("Page {page} of “{title}”, with the cited passage marked", { page, title: citation.title });
    byId("source-picture").append(make("img", { src: url, alt, onload: () => URL.revokeObjectURL(url) }));
  }
}

/** Open a citation beside the conversation, or over it where there is no room. */
export async function openSource(citation, button) {
  const dialog = byId("source");
  const turn = ++wanted;
  if (dialog.open) dialog.close();
  opener = button;
  button.setAttribute("aria-expanded", "true");
  byId("source-title").textContent = noteLabel(citation);
  byId("source-where").textContent = [citation.createdAt ? day(citation.createdAt) : "", citation.place ? placeInWords(citation.place, citation.title) : ""].filter(Boolean).join(" · ");
  byId("source-picture").replaceChildren();
  byId("source-text").replaceChildren();
  notice(_("Opening…"));
  if (wide.matches) dialog.show();
  else dialog.showModal();
  document.body.classList.toggle("with-source", wide.matches);
  byId("source-title").focus();
  let changed = "";
  try {
    const note = await json(`/v1/notes/${citation.noteId}`);
    if (turn !== wanted) return;
    changed = citation.contentSha256 && note.contentSha256 !== citation.contentSha256 ? _("The note has changed since it was cited: what is marked may not be what it said.") : "";
    notice(changed);
    byId("source-text").replaceChildren(rendered(note.content, citation));
    byId("source-text").querySelector("mark")?.scrollIntoView({ block: "center" });
  } catch (error) {
    if (turn === wanted) notice(error.message);
    return;
  }
  if (!citation.place?.parts.some((part) => part.boxes?.length)) return;
  if (!changed) notice(_("Opening…"));
  try {
    await picture(citation, turn);
    if (turn === wanted) notice(changed);
  } catch (error) {
    if (turn === wanted) notice(error instanceof Refused && error.status === 401 ? error.message : _("The picture of the page is not available. This is its text."));
  }
}

export function beginSource() {
  const dialog = byId("source");
  byId("source-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    document.body.classList.remove("with-source");
    if (!opener) return;
    opener.setAttribute("aria-expanded", "false");
    opener.focus();
    opener = null;
  });
  document.addEventListener("keydown", (event) => {
    // A dialog that is not modal does not close by itself.
    if (event.key === "Escape" && dialog.open && !document.querySelector("dialog:modal")) dialog.close();
  });
}
