/**
 * The page's state in the fragment of its URL, the part behind #, which browsers keep to themselves: a link can be given on,
 * and no server sees a prompt.
 */

export type UrlState = Readonly<Record<string, string>>;

/** Only what differs from the defaults; '' when nothing does. */
export function toFragment(state: UrlState, defaults: UrlState): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== (defaults[key] ?? '')) parameters.set(key, value);
  }
  return parameters.toString();
}

/** @param fragment With or without #; keys that have no default are left out. */
export function fromFragment(fragment: string, defaults: UrlState): UrlState {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''));
  return Object.fromEntries(
    Object.keys(defaults).map(key => [key, parameters.get(key) ?? defaults[key] ?? '']),
  );
}
