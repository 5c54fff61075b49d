import { fromFragment, toFragment, type UrlState } from './url-state.ts';

/** Something of the page that its URL keeps. */
export interface Binding {
  readonly key: string;
  readonly initial: string;
  get(): string;
  /** Called with what a URL says, which may be anything. */
  set(value: string): void;
}

// Typing must not fill up the history, nor be slowed down.
const writeAfter = 250;

/** Keeps the URL and the page in step. */
export class UrlBinding {
  readonly #bindings: readonly Binding[];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(bindings: readonly Binding[]) {
    this.#bindings = bindings;
    addEventListener('hashchange', () => this.read());
    for (const type of ['input', 'change']) {
      document.addEventListener(type, () => this.changed());
    }
  }

  /** Takes over what the URL says. */
  read(): void {
    const state = fromFragment(location.hash, this.#defaults());
    for (const binding of this.#bindings) {
      const value = state[binding.key] ?? binding.initial;
      if (value !== binding.get()) binding.set(value);
    }
  }

  /** Something that the URL keeps may have changed. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const state = Object.fromEntries(this.#bindings.map(one => [one.key, one.get()]));
      const fragment = toFragment(state, this.#defaults());
      const url = fragment === '' ? location.pathname + location.search : `#${fragment}`;
      history.replaceState(null, '', url);
    }, writeAfter);
  }

  #defaults(): UrlState {
    return Object.fromEntries(this.#bindings.map(one => [one.key, one.initial]));
  }
}

/** The controls that have data-url, by that name. */
export function controlBindings(root: ParentNode): Binding[] {
  const controls = root.querySelectorAll<
    HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement
  >('[data-url]');
  return [...controls].map(control => ({
    key: control.dataset.url ?? '',
    initial: control.value,
    get: () => control.value,
    set: value => {
      const options = control instanceof HTMLSelectElement ? [...control.options] : undefined;
      if (options && !options.some(option => option.value === value)) return;
      control.value = value;
      control.dispatchEvent(new Event('change'));
    },
  }));
}
