import type { App } from './app.ts';
import type { Lessons } from './lessons/lessons.ts';
import { byId } from './lib/dom.ts';
import type { Playground } from './playground/playground.ts';
import type { ViewName } from './views.ts';

/** The views beside the playground, whose code comes when they are first opened. */
export class OtherViews {
  readonly #app: App;
  readonly #playground: Playground;
  readonly #onChange: () => void;
  readonly #opened = new Map<ViewName, Promise<void>>();
  #lessons: Lessons | undefined;
  #lesson = '';

  /** @param onChange Told when something changes that the URL keeps. */
  constructor(app: App, playground: Playground, onChange: () => void) {
    this.#app = app;
    this.#playground = playground;
    this.#onChange = onChange;
  }

  /** The lesson that is open; '' for the first. */
  get lesson(): string {
    return this.#lesson;
  }

  set lesson(id: string) {
    this.#lesson = id;
    this.#lessons?.show(id);
  }

  async open(view: ViewName): Promise<void> {
    let opened = this.#opened.get(view);
    if (!opened) {
      opened = this.#make(view);
      this.#opened.set(view, opened);
    }
    await opened;
  }

  async #make(view: ViewName): Promise<void> {
    const root = byId(view, HTMLElement);
    switch (view) {
      case 'playground':
        break;
      case 'lessons': {
        const { Lessons } = await import('./lessons/lessons.ts');
        this.#lessons = new Lessons(this.#app, root, id => {
          this.#lesson = id;
          this.#onChange();
        });
        this.#lessons.show(this.#lesson);
        break;
      }
      case 'attention': {
        const { AttentionView } = await import('./attention/attention-view.ts');
        new AttentionView(this.#app, root, () => this.#playground.text);
        break;
      }
      case 'benchmark': {
        const { BenchmarkView } = await import('./benchmark/benchmark-view.ts');
        new BenchmarkView(this.#app, root);
        break;
      }
    }
  }
}
