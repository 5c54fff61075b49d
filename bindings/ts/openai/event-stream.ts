import { errorResponse } from './errors.js';

/** One event of an event stream, as `text/event-stream` has it. */
export function formatEvent(data: object | '[DONE]'): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/**
 * Chunks as the body of a response with the type `text/event-stream`, for a service worker or a server that answers
 * OpenAI's clients: an event for each, and `[DONE]`. An error in the midst becomes an event with an ErrorBody. Cancelling
 * the stream ends the generations.
 */
export function toEventStream(chunks: AsyncIterable<object>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const enqueue = (data: object | '[DONE]') =>
        controller.enqueue(encoder.encode(formatEvent(data)));
      try {
        const next = await iterator.next();
        enqueue(next.done ? '[DONE]' : next.value);
        if (next.done) controller.close();
      } catch (error) {
        enqueue(errorResponse(error).body);
        controller.close();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
