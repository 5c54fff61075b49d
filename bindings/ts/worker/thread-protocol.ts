/** What the Worker of an engine and its threads say to each other. */

export type ThreadMessage =
  | {
      readonly type: 'start';
      readonly module: WebAssembly.Module;
      readonly memory: WebAssembly.Memory;
      /** The lowest address of the thread's stack, and its size in bytes. */
      readonly stack: number;
      readonly stackBytes: number;
    }
  /** Not sent to a thread that nobody waits for any more. */
  | { readonly type: 'run' };

export type ThreadReply =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly reason: string };

/** The Worker's end of the line to a thread. */
export interface ThreadHandle {
  post(message: ThreadMessage): void;
  /** Sets the only listener. */
  onMessage(listener: (reply: ThreadReply) => void): void;
  /** Sets the only listener for a thread that could not start, or died. */
  onFailure(listener: (reason: string) => void): void;
  terminate(): void;
}
