// "Make this a golden question": the cited notes and the answer become what evaluations expect.

import { json } from "./api.js";
import { announce, byId, make, noteLabel, _ } from "./words.js";

let saved = () => {};

function say(text) {
  byId("golden-notice").textContent = text;
  byId("golden-notice").hidden = !text;
}

/** Open the form, filled in from an answer; `whenSaved` is called once the question is stored. */
export function openGolden(question, answer, citations, whenSaved) {
  saved = whenSaved;
  say("");
  byId("golden-query").value = question;
  byId("golden-answer").value = answer;
  const notes = new Map(citations.map((citation) => [citation.noteId, noteLabel(citation)]));
  byId("golden-notes").replaceChildren(
    ...[...notes].map(([value, title]) =>
      make("label", { className: "tick" }, make("input", { type: "checkbox", value, checked: true }), title),
    ),
  );
  byId("golden").showModal();
}

export function beginGolden() {
  const dialog = byId("golden");
  byId("golden-cancel").addEventListener("click", () => dialog.close());
  byId("golden-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = {
      query: byId("golden-query").value,
      expectedAnswer: byId("golden-answer").value,
      relevantNoteIds: [...byId("golden-notes").querySelectorAll("input:checked")].map((tick) => tick.value),
      category: byId("golden-category").value,
      difficulty: Number(byId("golden-difficulty").value),
    };
    try {
      await json("/v1/golden-dataset", { method: "POST", body });
    } catch (error) {
      say(error.message);
      return;
    }
    dialog.close();
    announce(_("Saved among the golden questions."));
    saved();
  });
}
