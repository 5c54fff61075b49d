/** See convert-to-gqa.mjs. */
export function convertToGqa(
  source: string,
  dest: string,
  nKvHead: number,
): Promise<{ config: Record<string, unknown>; pooled: number }>;
