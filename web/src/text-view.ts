import { byId } from './dom.ts';
import { FramePainter } from './frame.ts';

// Closer to the end than this counts as reading along.
const followWithin = 40;

/** The prompt and what follows it. Text goes in as it comes; only scrolling waits for frames. */
export class TextView {
  readonly #region = byId('output', HTMLElement);
  readonly #prompt = byId('output-prompt', HTMLElement);
  readonly #completion = byId('output-completion', HTMLElement);
  readonly #follow = new FramePainter(() => {
    if (this.#following) this.#region.scrollTop = this.#region.scrollHeight;
  });
  #text = new Text();
  #following = true;

  constructor() {
    this.#region.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#region;
      this.#following = scrollHeight - scrollTop - clientHeight < followWithin;
    });
  }

  start(prompt: string): void {
    byId('output-empty', HTMLElement).hidden = true;
    byId('output-text', HTMLElement).hidden = false;
    this.#prompt.textContent = prompt;
    // A new node, to which characters are appended: setting all of the text each time would take longer and longer.
    this.#text = new Text();
    this.#completion.replaceChildren(this.#text);
    // A screen reader then reads the text when it is whole, and not a syllable at a time.
    this.#completion.setAttribute('aria-busy', 'true');
    this.#following = true;
    this.#comeIntoView();
  }

  append(text: string): void {
    if (text === '') return;
    this.#text.appendData(text);
    this.#follow.request();
  }

  /** @param text The whole completion, where it is known: its end may differ from what was streamed. */
  end(text?: string): void {
    if (text !== undefined && text !== this.#text.data) this.#text.data = text;
    this.#completion.setAttribute('aria-busy', 'false');
    this.#follow.now();
  }

  /** On a phone the text is far below what was just tapped. */
  #comeIntoView(): void {
    if (this.#region.getBoundingClientRect().bottom <= innerHeight) return;
    byId('text-panel', HTMLElement).scrollIntoView({ block: 'start' });
  }
}
