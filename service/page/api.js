// Asks the service that this page comes from. Errors are Trouble with a line in words.

export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const TOKEN = "gaixie-token";
export const token = () => sessionStorage.getItem(TOKEN) ?? "";
export const setToken = (value) => sessionStorage.setItem(TOKEN, value);

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // not ours: a proxy's, perhaps
  }
  throw new Trouble(message, answer.status);
}

export const get = async (path, signal) => (await ask(path, { signal })).json();

export const post = async (path, body, signal) =>
  (
    await ask(path, {
      method: "POST",
      signal,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    })
  ).json();

export const send = (path, blob, type, signal) => ask(path, { method: "POST", signal, headers: { "Content-Type": type }, body: blob });

export const download = async (path) => (await ask(path)).blob();

// Of several questions on one matter only the last counts: each aborts the one before.
export function latest() {
  let control = new AbortController();
  return () => {
    control.abort();
    control = new AbortController();
    return control.signal;
  };
}
