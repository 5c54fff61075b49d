import { byId } from './dom.ts';

export type PageState = 'empty' | 'loading' | 'ready' | 'generating';

const load = byId('load', HTMLButtonElement);
const abort = byId('abort-load', HTMLButtonElement);
const unload = byId('unload', HTMLButtonElement);
const generate = byId('generate', HTMLButtonElement);
const stop = byId('stop', HTMLButtonElement);
const buttons = [load, abort, unload, generate, stop];
let current: PageState = 'empty';

export function pageState(): PageState {
  return current;
}

/** Shows what can be done now. */
export function showState(state: PageState): void {
  current = state;
  document.body.dataset.state = state;
  const focused = buttons.find(button => button === document.activeElement);
  load.disabled = state === 'loading' || state === 'generating';
  abort.hidden = state !== 'loading';
  unload.hidden = state !== 'ready' && state !== 'generating';
  unload.disabled = state === 'generating';
  generate.disabled = state === 'loading' || state === 'generating';
  stop.disabled = state !== 'generating';
  if (focused && !isUsable(focused)) successorOf(focused)?.focus();
}

/** When the button in use goes away, whoever works by keyboard would be back at the top of the page. */
function successorOf(focused: HTMLButtonElement): HTMLButtonElement | undefined {
  const next = focused === generate || focused === stop ? generate : load;
  return [stop, abort, next].find(isUsable);
}

function isUsable(button: HTMLButtonElement): boolean {
  return !button.disabled && !button.hidden;
}
