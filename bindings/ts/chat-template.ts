import type { Prompt } from './types.js';

/** One turn of a conversation. */
export interface ChatTurn {
  /** Who says it. */
  readonly role: 'system' | 'developer' | 'user' | 'assistant';
  /** What is said. */
  readonly content: string;
  /** The speaker's name, if there is one. */
  readonly name?: string;
}

/** What a conversation looks like to the model. */
export interface ChatPrompt {
  /** Ends where the assistant's answer is to begin. */
  readonly prompt: Prompt;
  /** Texts that the model writes when it goes on to another speaker. They end the answer, and are no part of it. */
  readonly stop: readonly string[];
}

/**
 * Writes a conversation as a text for the model to continue. It may throw, to refuse a conversation. White space that the
 * answer begins with is dropped, unless the last turn is the assistant's, which is then continued.
 */
export type ChatTemplate = (turns: readonly ChatTurn[]) => ChatPrompt;

/**
 * A conversation as a script: what the system says as a paragraph of its own, then a line `User: …` or `Assistant: …` for
 * each turn, and `Assistant:` at the end. GPT-2 was trained on no template of its own, and has read such texts.
 */
export const plainChatTemplate: ChatTemplate = turns => {
  const last = turns.at(-1);
  const text = turns.map(turn => {
    if (isSystem(turn)) return `${turn.content}\n\n`;
    const isOpen = turn === last && turn.role === 'assistant';
    return `${speaker(turn)}: ${turn.content}${isOpen ? '' : '\n'}`;
  });
  if (last?.role !== 'assistant') text.push('Assistant:');
  const others = turns.filter(({ role }) => role === 'user').map(speaker);
  const names = new Set(['User', ...others]);
  return { prompt: text.join(''), stop: Array.from(names, name => `\n${name}:`) };
};

function isSystem({ role }: ChatTurn): boolean {
  return role === 'system' || role === 'developer';
}

function speaker({ role, name }: ChatTurn): string {
  return name ?? (role === 'assistant' ? 'Assistant' : 'User');
}

/** Drops the white space that a text begins with, as the text comes. */
export class StartTrimmer {
  #begun: boolean;

  /** @param keep Whether to drop nothing. */
  constructor(keep: boolean) {
    this.#begun = keep;
  }

  push(text: string): string {
    const trimmed = this.#begun ? text : text.trimStart();
    if (trimmed !== '') this.#begun = true;
    return trimmed;
  }
}
