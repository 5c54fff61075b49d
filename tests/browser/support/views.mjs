// The views beside the playground, as a person uses them.

import { patience } from './chromium.mjs';

/** Opens a lesson, runs it to its end, and returns the sentence that it ends with. */
export async function runLesson(page, id, settings = {}) {
  await openLesson(page, id);
  for (const [label, value] of Object.entries(settings)) {
    await page.getByLabel(label, { exact: true }).selectOption(String(value));
  }
  const lesson = page.locator(`#lesson-${id}`);
  await lesson.getByRole('button', { name: 'Run' }).click();
  const conclusion = lesson.locator('.conclusion');
  const error = lesson.locator('.error');
  await conclusion.or(error).filter({ visible: true }).first().waitFor({ timeout: patience });
  if (await error.isVisible()) throw new Error(`lesson ${id}: ${await error.textContent()}`);
  return await conclusion.textContent();
}

export async function openLesson(page, id) {
  await page.getByRole('tab', { name: 'Lessons' }).click();
  await page.locator(`[data-lesson="${id}"]`).click();
}

/** Computes the attention over a text, and returns what is said of the last token. */
export async function showAttention(page, { text, window = '' }) {
  await page.getByRole('tab', { name: 'Attention' }).click();
  await page.fill('#attention-text', text);
  await page.selectOption('#attention-window', window);
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.locator('.heat-frame canvas').waitFor({ timeout: patience });
  await page.waitForSelector('body[data-state="ready"]', { timeout: patience });
  return await page.textContent('.heat-detail');
}

/** Runs the benchmark to its end, and returns its report. */
export async function runBenchmark(page) {
  await page.getByRole('tab', { name: 'Benchmark' }).click();
  await page.getByRole('button', { name: 'Run the benchmark' }).click();
  await page
    .locator('#benchmark [role="status"]')
    .filter({ hasText: 'Done.' })
    .waitFor({ timeout: patience });
  return await page.inputValue('#benchmark-report');
}

/** The numbers that stand in a sentence, in their order. */
export function numbersIn(sentence) {
  return [...sentence.matchAll(/\d[\d,]*(?:\.\d+)?/g)].map(([text]) =>
    Number(text.replaceAll(',', '')),
  );
}
