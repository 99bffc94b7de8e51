// Who asks: the dialog for the key, and what the server says the key may do.

import { json, key, Refused } from "./api.js";
import { byId, t } from "./words.js";

/** What the present key allows: `tenant`, `role`, `scoped`; null until the server said it. */
export let me = null;

export const mayJudge = () => me !== null && !me.scoped;
export const mayWrite = () => me !== null && !me.scoped && me.role !== "reader";

const ROLES = { owner: "PAGE_ROLE_OWNER", writer: "PAGE_ROLE_WRITER", reader: "PAGE_ROLE_READER" };

let changed = () => {};

function show() {
  byId("who").textContent = me && me.keyId ? t("PAGE_WHO", { tenant: me.tenant, role: t(ROLES[me.role]) }) : "";
}

/** Ask the server who this is; without a valid key, ask the reader for one. */
export async function refresh() {
  me = null;
  try {
    me = await json("/v1/me");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) openKey(key.get() ? error.message : t("PAGE_KEY_NEEDED"));
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
  byId("key-open").addEventListener("click", () => openKey(me && !me.keyId ? t("PAGE_KEY_NOT_NEEDED") : ""));
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
