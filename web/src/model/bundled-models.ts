/** A model that lies beside the page, as models.json lists it. */
export interface BundledModel {
  readonly id: string;
  readonly name: string;
  /** Whether its weights are random numbers, so that its text means nothing. */
  readonly random: boolean;
  /** Relative to the page, with a slash at its end. */
  readonly folder: string;
  /** Of the weights' file. */
  readonly bytes: number;
  /** Whether it is only there for a lesson to compare with the one before it. */
  readonly forLesson?: boolean;
}

/** None where the list cannot be had: the page can do without. */
export async function fetchBundledModels(): Promise<readonly BundledModel[]> {
  try {
    const response = await fetch('./models.json', { cache: 'no-cache' });
    if (!response.ok) return [];
    const { models } = (await response.json()) as { models: BundledModel[] };
    return models;
  } catch {
    return [];
  }
}
