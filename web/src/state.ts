export type PageState = 'empty' | 'loading' | 'ready' | 'generating';

/** What a button needs, in its data-needs: to be usable at all (and else it is greyed), or to be there (and else it is hidden). */
const usableIn: Record<string, readonly PageState[]> = {
  idle: ['empty', 'ready'],
  model: ['ready'],
  job: ['generating'],
};
const shownIn: Record<string, readonly PageState[]> = {
  loading: ['loading'],
  loaded: ['ready', 'generating'],
};

let current: PageState = 'empty';

export function pageState(): PageState {
  return current;
}

/** Shows what can be done now. */
export function showState(state: PageState): void {
  current = state;
  document.body.dataset.state = state;
  const focused = document.activeElement;
  for (const button of document.querySelectorAll('button')) applyState(button);
  if (focused instanceof HTMLButtonElement && !isUsable(focused)) successorOf(focused)?.focus();
}

/** For a button that was made meanwhile. */
export function applyState(button: HTMLButtonElement): void {
  const { needs, shown } = button.dataset;
  if (needs) {
    // A second reason, which only the button's owner knows.
    button.disabled = !usableIn[needs]?.includes(current) || button.dataset.off !== undefined;
  }
  if (shown) button.hidden = !shownIn[shown]?.includes(current);
}

/** Greys a button for a reason of its owner's, or no more. */
export function setOff(button: HTMLButtonElement, off: boolean): void {
  if (off) button.dataset.off = '';
  else delete button.dataset.off;
  applyState(button);
}

/** When the button in use goes away, whoever works by keyboard would be back at the top of the page. */
function successorOf(focused: HTMLButtonElement): HTMLButtonElement | undefined {
  const group = focused.closest('form, section')?.querySelectorAll('button') ?? [];
  return [...group].find(button => button !== focused && button.dataset.needs && isUsable(button));
}

function isUsable(button: HTMLButtonElement): boolean {
  return !button.disabled && !button.hidden && button.offsetParent !== null;
}
