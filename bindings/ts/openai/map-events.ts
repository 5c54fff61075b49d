/**
 * Yields the chunks that events become, returns what the events return, and ends them when the consumer leaves.
 */
export async function* mapEvents<Event, Chunk, Result>(
  events: AsyncGenerator<Event, Result, undefined>,
  map: (event: Event) => readonly Chunk[],
): AsyncGenerator<Chunk, Result, undefined> {
  try {
    for (;;) {
      const next = await events.next();
      if (next.done) return next.value;
      yield* map(next.value);
    }
  } finally {
    await events.return(undefined as Result);
  }
}
