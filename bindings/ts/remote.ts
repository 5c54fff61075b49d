/** Objects that one side of a Worker has and the other uses: each call is a message there and one back. */

import { describeThrown } from './protocol.js';

/** Methods that take and return what can be cloned. */
type Methods<T> = { readonly [Name in keyof T]: (...args: never[]) => Promise<unknown> };

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

type Answer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: { readonly name: string; readonly message: string } }
);

/** Lets the other end of the port call an object's methods. Byte arrays that they return are given away. */
export function serveObject<T extends Methods<T>>(port: MessagePort, object: T): void {
  port.onmessage = async (event: MessageEvent<Call>) => {
    const { id, method, args } = event.data;
    try {
      const call = object[method as keyof T] as unknown as (...args: unknown[]) => Promise<unknown>;
      const value = await call.apply(object, [...args]);
      const transfer = ownsItsBuffer(value) ? [value.buffer] : [];
      port.postMessage({ id, value } satisfies Answer, transfer);
    } catch (thrown) {
      const name = thrown instanceof Error || thrown instanceof DOMException ? thrown.name : '';
      port.postMessage({ id, error: { name, message: describeThrown(thrown) } } satisfies Answer);
    }
  };
  // In Node, only those who wait for an answer keep the process alive.
  if ('unref' in port && typeof port.unref === 'function') port.unref();
}

/** The object at the other end of a port. Rejections are Errors with the name and description of what was thrown. */
export function remoteObject<T extends Methods<T>>(
  port: MessagePort,
  methods: readonly (keyof T & string)[],
): T {
  let lastId = 0;
  const waiting = new Map<number, (answer: Answer) => void>();
  port.onmessage = (event: MessageEvent<Answer>) => {
    const settle = waiting.get(event.data.id);
    waiting.delete(event.data.id);
    settle?.(event.data);
  };
  const stub =
    (method: string) =>
    async (...args: unknown[]) => {
      const id = ++lastId;
      const answered = new Promise<Answer>(resolve => waiting.set(id, resolve));
      port.postMessage({ id, method, args } satisfies Call);
      const answer = await answered;
      if ('value' in answer) return answer.value;
      const error = new Error(answer.error.message);
      error.name = answer.error.name;
      throw error;
    };
  return Object.fromEntries(methods.map(method => [method, stub(method)])) as unknown as T;
}

function ownsItsBuffer(value: unknown): value is Uint8Array<ArrayBuffer> {
  return (
    value instanceof Uint8Array &&
    value.buffer instanceof ArrayBuffer &&
    value.byteLength === value.buffer.byteLength
  );
}

/** A stream whose reader is in the Worker, which asks for one chunk at a time. */
export interface RemoteStream {
  /** The next bytes, or undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/** Chunks are copied, because what a stream yields may be a part of a buffer that its source uses again. */
export function streamObject(stream: ReadableStream<Uint8Array>): RemoteStream {
  const reader = stream.getReader();
  return {
    async read() {
      const { done, value } = await reader.read();
      if (done) return undefined;
      if (!(value instanceof Uint8Array)) throw new TypeError('the stream yields no Uint8Arrays');
      return new Uint8Array(value);
    },
    cancel: () => reader.cancel(),
  };
}
