/** The page's views, one of which is shown: tabs, as the ARIA authoring practices describe them. */

export const viewNames = ['playground', 'lessons', 'attention', 'benchmark'] as const;

export type ViewName = (typeof viewNames)[number];

export class Views {
  readonly #tabs: readonly HTMLButtonElement[];
  readonly #onShow: (view: ViewName) => void;
  #shown: ViewName = 'playground';

  /** @param onShow Told each time a view comes to be shown. */
  constructor(onShow: (view: ViewName) => void) {
    this.#onShow = onShow;
    this.#tabs = [...document.querySelectorAll<HTMLButtonElement>('[role="tab"]')];
    for (const [index, tab] of this.#tabs.entries()) {
      tab.addEventListener('click', () => this.show(nameOf(tab)));
      tab.addEventListener('keydown', event => {
        const last = this.#tabs.length - 1;
        const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = this.#tabs.at(to % this.#tabs.length);
        if (!next) return;
        next.focus();
        this.show(nameOf(next));
      });
    }
  }

  get shown(): ViewName {
    return this.#shown;
  }

  show(view: ViewName): void {
    this.#shown = view;
    document.body.dataset.view = view;
    for (const tab of this.#tabs) {
      const chosen = nameOf(tab) === view;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute('aria-controls') ?? '');
      if (panel) panel.hidden = !chosen;
    }
    this.#onShow(view);
  }
}

function nameOf(tab: HTMLButtonElement): ViewName {
  return tab.dataset.view as ViewName;
}
