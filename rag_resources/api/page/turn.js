// A question of the conversation with its answer, while it streams and afterwards.

import { Cut, json, Refused, stream } from "./api.js";
import { openGolden } from "./golden.js";
import { mayJudge, mayWrite, openKey } from "./key.js";
import { copy, keep } from "./history.js";
import { inline, rendered } from "./markdown.js";
import { openSource } from "./source.js";
import { announce, byId, day, make, noteLabel, placeInWords, seconds, _ } from "./words.js";

let turns = 0;

/** A thumb, drawn: many machines have no font with one. */
function thumb() {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", "M7.5 11v9h-4v-9zM7.5 11l3.8-7.5c1.5.1 2.5 1.1 2.4 2.6L13.4 9.5h4.9c1.3 0 2.2 1.1 2 2.4l-1 6c-.2 1.2-1.2 2.1-2.4 2.1H7.5");
  picture.append(path);
  return picture;
}

export class Turn {
  constructor(question, { filters, words, ignored = [] }, conversation, ask) {
    this.question = question;
    this.filters = filters;
    this.ignored = ignored;
    this.conversation = conversation;
    this.searched = question; // what the next question may leave out
    this.isImplied = false; // whether the question named conditions, which `/v1/retrieve` does not read
    this.again = () => ask(question, { filters, words, ignored });
    this.without = (condition) => ask(question, { filters, words, ignored: [...ignored, condition] });
    this.numbers = new Map(); // the place of each citation, in the order of reading
    this.citations = [];
    this.sentences = [];
    this.sent = performance.now();
    const id = `turn-${++turns}`;
    this.answer = make("div", { className: "answer", "aria-live": "polite", "aria-busy": "true" });
    this.state = make("p", { className: "state" }, make("span", { className: "pulse", "aria-hidden": "true" }), _("Searching…"));
    this.stop = make("button", { type: "button", className: "plain stop", onclick: () => this.controller.abort() }, _("Stop"));
    this.state.append(this.stop);
    this.below = make("div", { className: "below-answer" });
    this.element = make(
      "article",
      { className: "turn", "aria-labelledby": id },
      make("h2", { id, className: "question" }, question),
      words ? make("p", { className: "aside" }, _("Only in: {filters}", { filters: words })) : null,
      this.answer,
      this.state,
      this.below,
    );
    this.controller = new AbortController();
  }

  async run() {
    announce(_("Searching…"));
    const body = { query: this.question, language: "auto", conversation: this.conversation, ignored: this.ignored };
    if (this.filters) body.filters = this.filters;
    try {
      await stream(body, this.controller.signal, (name, data) => this.receive(name, data));
    } catch (error) {
      this.broken(error);
    } finally {
      this.answer.setAttribute("aria-busy", "false");
      this.state.remove();
    }
  }

  receive(name, data) {
    if (name === "sentence") this.sentence(data);
    else if (name === "done") this.done(data);
    else this.problem(data.error);
  }

  sentence({ text, citations, quotation }) {
    if (this.state.firstChild.nextSibling.data !== _("Answering…")) this.state.firstChild.nextSibling.data = _("Answering…");
    this.sentences.push(text);
    const marks = citations.map((citation) => make("sup", {}, this.mark(citation)));
    const { prefix, suffix } = quotation ? citations[0] : {};
    if (/\n|^ {0,3}(?:[-*+>|]|#{1,6}|\d+[.)]) /u.test(text)) {
      const before = prefix ? `${prefix}\n` : "";
      const start = Array.from(before).length;
      const marked = prefix || suffix ? { start, end: start + Array.from(text).length } : {};
      this.answer.append(make("div", { className: "sentence text" }, rendered(before + text + (suffix ? `\n${suffix}` : ""), marked), ...marks));
      return;
    }
    const around = (shown) => shown && make("span", { className: "around" }, inline(shown), " ");
    const tag = prefix || suffix ? "mark" : "span";
    const last = text.search(/[^\s*_`~[\]()]+$/u); // The marks stay on the line of the last word.
    const kept = make("span", { className: "kept" }, last < 0 ? "" : text.slice(last), ...marks);
    this.answer.append(around(prefix) || "", make(tag, { className: "sentence" }, inline(last < 0 ? text : text.slice(0, last)), kept), " ", around(suffix) || "");
  }

  mark(citation) {
    const place = `${citation.noteId} ${citation.start} ${citation.end}`;
    if (!this.numbers.has(place)) {
      this.numbers.set(place, this.citations.push(citation));
    }
    const number = this.numbers.get(place);
    return this.opening(citation, "cite", _("Source {number}: {title}", { number, title: noteLabel(citation) }), String(number));
  }

  opening(citation, className, label, text) {
    const button = make("button", { type: "button", className, "aria-label": label, "aria-expanded": "false" }, text);
    button.addEventListener("click", () => openSource(citation, button));
    return button;
  }

  done(answer) {
    if (!answer.found) this.answer.append(make("span", { className: "nothing" }, answer.notice));
    this.read(answer.reading);
    this.sources(answer.answerId);
    this.actions(answer);
    if (answer.found && answer.silence?.missing) this.below.append(make("p", { className: "aside uncalibrated" }, _("Not calibrated: what the notes do not say is answered, too. Check the sources.")));
    this.told(answer);
    announce(answer.found ? _("Answer complete. Sources: {count}.", { count: this.citations.length }) : answer.notice);
  }

  /** Show what was really searched, with the conditions that the question named; they can be revoked. */
  read(reading) {
    if (!reading) return;
    this.searched = reading.searched;
    this.isImplied = reading.implied.length > 0;
    const told = make("p", { className: "aside read" });
    if (reading.searched !== this.question) told.append(_("Searched: “{searched}”", { searched: reading.searched }), " ");
    for (const { text, value } of reading.implied) {
      const label = _("Search without “{condition}”", { condition: text });
      const revoke = make("button", { type: "button", className: "plain revoke", title: label, "aria-label": label }, "×");
      revoke.addEventListener("click", () => this.without(text));
      told.append(make("span", { className: "implied" }, _("Only in {condition}", { condition: value }), " ", revoke), " ");
    }
    if (told.childNodes.length) this.answer.before(told);
  }

  sources(answerId) {
    if (!this.citations.length) return;
    const items = this.citations.map((citation, place) => {
      const title = noteLabel(citation);
      const columns = citation.columns ? make("span", { className: "where" }, _("Columns: {columns}", citation)) : null;
      const where = [citation.createdAt ? day(citation.createdAt) : "", citation.place ? placeInWords(citation.place, title) : ""].filter(Boolean).join(" · ");
      return make(
        "li",
        {},
        make("div", { className: "cited" }, this.opening(citation, "title", _("Source {number}: {title}", { number: place + 1, title }), title), make("span", { className: "where" }, where), columns),
        answerId && mayJudge() ? this.thumbs(answerId, place + 1) : null,
      );
    });
    this.below.append(make("h3", {}, _("Sources")), make("ol", { className: "sources" }, ...items));
  }

  thumbs(answerId, number = null) {
    const labels = number === null ? { up: _("The answer is good"), down: _("The answer is bad") } : { up: _("Source {number} says so", { number }), down: _("Source {number} does not say so", { number }) };
    const group = make("span", { className: "thumbs", role: "group" });
    const send = async (verdict, button) => {
      const body = { answerId, verdict };
      if (number !== null) body.citation = number;
      try {
        await json("/v1/feedback", { method: "POST", body });
      } catch (error) {
        this.problem(error.message);
        return;
      }
      for (const each of group.querySelectorAll(".thumb")) each.setAttribute("aria-pressed", String(each === button));
      announce(_("Noted."));
      group.querySelector("form")?.remove();
      if (verdict === "down") group.append(reason());
    };
    const reason = () => {
      const field = make("input", { type: "text", maxLength: 1000, "aria-label": _("What is wrong?"), placeholder: _("What is wrong?") });
      const form = make("form", { className: "reason" }, field, make("button", { type: "submit", className: "plain" }, _("Send")));
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        const body = { answerId, verdict: "down", comment: field.value.trim() };
        if (number !== null) body.citation = number;
        try {
          await json("/v1/feedback", { method: "POST", body });
          form.replaceWith(make("span", { className: "aside" }, _("Noted.")));
        } catch (error) {
          this.problem(error.message);
        }
      });
      return form;
    };
    for (const verdict of ["up", "down"]) {
      const label = labels[verdict];
      const button = make("button", { type: "button", className: `thumb ${verdict}`, title: label, "aria-label": label, "aria-pressed": "false" }, thumb());
      button.addEventListener("click", () => send(verdict, button));
      group.append(button);
    }
    return group;
  }

  actions(answer) {
    const row = make("div", { className: "actions" });
    if (answer.answerId && mayJudge()) row.append(this.thumbs(answer.answerId));
    if (answer.found && mayWrite()) {
      const button = make("button", { type: "button", className: "plain golden" }, _("Make this a golden question"));
      button.addEventListener("click", () =>
        openGolden(this.question, this.sentences[0], this.citations, () => button.replaceWith(make("span", { className: "aside" }, _("Saved among the golden questions.")))),
      );
      row.append(button);
    }
    const nearest = make("button", { type: "button", className: "plain passages" }, _("Show the nearest passages"));
    nearest.addEventListener("click", () => this.passages(nearest));
    row.append(nearest);
    if (answer.found) {
      const turn = { question: this.question, answer: this.sentences.join("\n\n"), sources: this.citations.map(noteLabel) };
      keep(turn.question, turn.answer, turn.sources);
      const button = make("button", { type: "button", className: "plain copy" }, _("Copy"));
      button.addEventListener("click", () => copy(turn));
      row.append(button);
    }
    this.below.append(row);
  }

  async passages(button) {
    const body = { query: this.searched, language: "auto" };
    if (this.filters) body.filters = this.filters;
    button.disabled = true;
    try {
      const found = await json("/v1/retrieve", { method: "POST", body });
      const items = found.results.map((result) => {
        const { startChar: start, endChar: end } = result.metadata;
        const citation = { noteId: result.noteId, externalId: result.externalId, start, end, title: result.title, createdAt: result.createdAt };
        const title = noteLabel(result);
        const where = result.createdAt ? day(result.createdAt) : "";
        return make("li", {}, make("div", { className: "cited" }, this.opening(citation, "title", title, title), make("span", { className: "where" }, where)), make("div", { className: "passage" }, rendered(result.content)));
      });
      button.parentElement.after(make("h3", {}, this.isImplied ? _("Nearest passages, also outside the conditions of the question") : _("Nearest passages")), make("ol", { className: "sources" }, ...items));
      button.remove();
    } catch (error) {
      button.disabled = false;
      this.problem(error.message);
    }
  }

  told({ explanations, metadata }) {
    const cost = _("{passages} passages read · {seconds} s · configuration {configuration}", { passages: metadata.passages, seconds: seconds(performance.now() - this.sent), configuration: metadata.configuration ?? "–" });
    this.below.append(
      make("details", { className: "about", open: metadata.degraded.length > 0 || metadata.messages.length > 0 },
        make("summary", {}, _("About this answer")),
        make("ul", {}, ...explanations.map((each) => make("li", {}, each)), make("li", { className: "cost" }, cost))),
    );
  }

  problem(text, { again = false } = {}) {
    const retry = make("button", { type: "button", className: "plain again" }, _("Ask again"));
    retry.addEventListener("click", this.again);
    this.below.append(make("p", { className: "notice", role: "alert" }, text, ...(again ? [" ", retry] : [])));
  }

  broken(error) {
    if (error.name === "AbortError" || error instanceof Cut) {
      this.sources();
      this.problem(_("The answer is incomplete. What had arrived is checked and kept."), { again: true });
    } else if (error instanceof Refused) {
      this.problem(error.message, { again: true });
      if (error.status === 401) openKey(error.message);
    } else {
      throw error;
    }
  }

  show() {
    byId("turns").append(this.element);
    this.element.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
}
