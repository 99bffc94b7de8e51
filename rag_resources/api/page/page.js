// The page to ask at: puts its parts together.

import { beginDocuments } from "./documents.js";
import { beginFilters, chosenFilters, refreshFilters } from "./filters.js";
import { beginGolden } from "./golden.js";
import { beginHistory } from "./history.js";
import { begin as beginKey } from "./key.js";
import { beginSource } from "./source.js";
import { Turn } from "./turn.js";
import { byId } from "./words.js";

const box = byId("question");

const TURNS = 5; // that a question may refer to
let turns = [];

function ask(question, chosen) {
  const turn = new Turn(question, chosen, turns.slice(-TURNS).map((each) => each.searched), ask);
  turns.push(turn);
  byId("lead").hidden = true;
  byId("new").hidden = false;
  turn.show();
  turn.run();
}

function fit() {
  // For browsers without `field-sizing`.
  box.rows = Math.min(6, Math.max(1, box.value.split("\n").length));
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = box.value.trim();
  if (!question) return box.focus();
  ask(question, chosenFilters());
  box.value = "";
  fit();
  box.focus();
});

box.addEventListener("input", fit);
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("ask").requestSubmit();
});

byId("new").addEventListener("click", () => {
  byId("turns").replaceChildren();
  turns = [];
  byId("lead").hidden = false;
  byId("new").hidden = true;
  box.focus();
});

beginSource();
beginGolden();
beginFilters();
beginDocuments();
beginHistory();
beginKey(refreshFilters).then(() => document.documentElement.classList.add("ready"));
