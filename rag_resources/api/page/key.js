// Who asks: the dialog for the key, and what the server says the key may do.

import { json, key, Refused } from "./api.js";
import { byId, _ } from "./words.js";

/** What the present key allows: `tenant`, `role`; null until the server said it. */
export let me = null;

export const mayJudge = () => me !== null;
export const mayWrite = () => me !== null && me.role !== "reader";

const ROLES = { owner: _("owner"), writer: _("reads and writes"), reader: _("reads") };

let changed = () => {};

function show() {
  byId("who").textContent = me && me.keyId ? _("{tenant} · {role}", { tenant: me.tenant, role: ROLES[me.role] }) : "";
}

/** Ask the server who this is; without a valid key, ask the reader for one. */
export async function refresh() {
  me = null;
  try {
    me = await json("/v1/me");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) openKey(key.get() ? error.message : _("This server asks for a key."));
  }
  show();
  await changed();
}

/** Open the dialog, and say why. */
export function openKey(why = "") {
  byId("key-notice").textContent = why;
  byId("key-notice").hidden = !why;
  byId("key-value").value = key.get();
  byId("key-forget").hidden = !key.get();
  if (!byId("key").open) byId("key").showModal();
  byId("key-value").focus();
}

/** Begin; `whenChanged` is called once it is known, or known anew, who asks. */
export function begin(whenChanged) {
  changed = whenChanged;
  byId("key-open").addEventListener("click", () => openKey(me && !me.keyId ? _("This server asks for no key yet.") : ""));
  byId("key-close").addEventListener("click", () => byId("key").close());
  byId("key-forget").addEventListener("click", () => {
    key.forget();
    byId("key").close();
    refresh();
  });
  byId("key-form").addEventListener("submit", () => {
    const given = byId("key-value").value.trim();
    if (given) key.set(given);
    else key.forget();
    refresh();
  });
  return refresh();
}
