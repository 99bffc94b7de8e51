// Calls of the API, with the reader's key; server-sent events as they arrive.

import { language, _ } from "./words.js";

const KEPT = "rag-key"; // in sessionStorage: of this tab, gone when it is closed

export const key = {
  get: () => sessionStorage.getItem(KEPT) || "",
  set: (value) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
};

/** What the server refused, in the reader's words; status 0 if it could not be reached. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The connection ended before the answer did. */
export class Cut extends Error {}

async function call(path, { method = "GET", body, signal } = {}) {
  const headers = { "Accept-Language": language };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  const isForm = body instanceof FormData;
  if (body && !isForm) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: isForm || !body ? body : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, _("The server could not be reached. Check that it is running, and ask again."));
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const told = [problem.error, ...(problem.details || [])].filter(Boolean).join(" ");
  throw new Refused(response.status, told || _("The server could not be reached. Check that it is running, and ask again."));
}

export async function json(path, options) {
  const response = await call(path, options);
  return response.status === 204 ? null : response.json();
}

export async function blob(path) {
  return (await call(path)).blob();
}

/** Ask, and call `on(name, data)` for each event; resolves after `done` or `error`. */
export async function stream(body, signal, on) {
  const response = await call("/v1/answers", { method: "POST", body: { ...body, stream: true }, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Cut();
    }
    if (part.done) throw new Cut();
    pending += part.value;
    const events = pending.split("\n\n");
    pending = events.pop();
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/s.exec(event) || [];
      if (!name) continue;
      on(name, JSON.parse(data));
      if (name === "done" || name === "error") return;
    }
  }
}
