// The documents of the present key, and how to add one.

import { json } from "./api.js";
import { refreshFilters } from "./filters.js";
import { mayWrite } from "./key.js";
import { byId, day, make, _ } from "./words.js";

const STATES = {
  pending: _("waiting to be read"),
  downloading: _("being downloaded"),
  extracting: _("being read"),
  chunking: _("being indexed"),
  embedding: _("being indexed"),
  completed: _("ready"),
  partial: _("read in part"),
  failed: _("could not be read"),
};

function say(text) {
  byId("documents-notice").textContent = text;
  byId("documents-notice").hidden = !text;
}

async function show() {
  byId("documents-form").hidden = !mayWrite();
  try {
    const { documents, total } = await json("/v1/documents?limit=200");
    byId("documents-list").replaceChildren(
      ...documents.map((each) => make("li", {}, make("span", { className: "name" }, each.title || each.address), make("span", { className: "where" }, `${STATES[each.status]} · ${day(each.arrivedAt)}`))),
    );
    byId("documents-count").textContent = _("Documents: {count}", { count: total });
  } catch (error) {
    say(error.message);
  }
}

export function beginDocuments() {
  const dialog = byId("documents");
  byId("documents-open").addEventListener("click", () => {
    say("");
    dialog.showModal();
    show();
  });
  byId("documents-close").addEventListener("click", () => dialog.close());
  byId("documents-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [file] = byId("documents-file").files;
    if (!file) return;
    const body = new FormData();
    body.append("file", file);
    say(_("Sending…"));
    try {
      await json("/v1/documents", { method: "POST", body });
      event.target.reset();
      say(_("Received. It is read by the next run."));
    } catch (error) {
      say(error.message);
    }
    show();
    refreshFilters();
  });
}
