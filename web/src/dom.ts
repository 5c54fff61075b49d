/** An element that index.html has. A missing one is a mistake in the page, so it is told at once and by name. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`The page has no ${type.name} #${id}`);
  return element;
}

/** Shows a number as people read it, and keeps the exact one for programs. */
export function showData(element: HTMLDataElement, value: number, text: string): void {
  element.value = String(value);
  element.textContent = text;
}
