/** An element that index.html has. A missing one is a mistake in the page, so it is told at once and by name. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`The page has no ${type.name} #${id}`);
  return element;
}

/** Sets an element's text, and leaves alone one that has it: it would be laid out and painted anew. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows a number as people read it, and keeps the exact one for programs. */
export function showData(element: HTMLDataElement, value: number, text: string): void {
  const exact = String(value);
  if (element.value !== exact) element.value = exact;
  setText(element, text);
}

type Child = Node | string | undefined;

/**
 * Makes an element.
 * @param attributes `class` and others by name; true sets an empty one, false and undefined leave it out.
 */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children.filter(child => child !== undefined));
  return element;
}

/** As `make`, for pictures. */
export function makeSvg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(element, attributes);
  element.append(...children.filter(child => child !== undefined));
  return element;
}

function setAttributes(
  element: Element,
  attributes: Readonly<Record<string, string | number | boolean | undefined>>,
): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
}
