import type { Engine } from 'kvasm';

/** What lessons begin their stories with. */
export const opening = 'Once upon a time there was a king who had a daughter';

const story =
  'Once upon a time there was a king who had a daughter, and she was so beautiful that the sun himself wondered at her. ' +
  'Near the castle lay a great dark forest, and in the forest, under an old lime tree, was a well; and when the day was ' +
  'very warm, the daughter of the king went out into the forest and sat down by the cool well. There she took a golden ' +
  'ball, threw it into the air, and caught it again, and this ball was the thing she loved best of all. ';

/** So many token ids of a story that begins anew where it ends; fewer where the context has no room for them. */
export async function storyIds(engine: Engine, count: number): Promise<Int32Array> {
  const room = engine.info.contextLength;
  await using session = engine.session();
  // No token is shorter than a character.
  await session.generate(story.slice(0, room), { maxTokens: 0 }).result();
  const ids = await session.ids();
  const length = Math.min(count, room);
  return Int32Array.from({ length }, (_, i) => ids[i % ids.length] ?? 0);
}
