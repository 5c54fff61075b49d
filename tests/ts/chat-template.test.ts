import { describe, expect, it } from 'vitest';

import { type ChatTurn, plainChatTemplate, StartTrimmer } from '../../bindings/ts/chat-template.js';

describe('the plain template', () => {
  it.each<[string, ChatTurn[], string]>([
    ['asks for an answer', [{ role: 'user', content: 'Hi' }], 'User: Hi\nAssistant:'],
    [
      'sets the system apart, and has a line for each turn',
      [
        { role: 'system', content: 'A friendly talk.' },
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello!' },
        { role: 'user', content: 'Why?' },
      ],
      'A friendly talk.\n\nUser: Hi\nAssistant: Hello!\nUser: Why?\nAssistant:',
    ],
    [
      'goes on where the assistant was',
      [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hel' },
      ],
      'User: Hi\nAssistant: Hel',
    ],
    ['names speakers', [{ role: 'user', content: 'Hi', name: 'Ann' }], 'Ann: Hi\nAssistant:'],
    ['starts with the assistant', [{ role: 'developer', content: 'X' }], 'X\n\nAssistant:'],
  ])('%s', (_, turns, prompt) => {
    expect(plainChatTemplate(turns).prompt).toBe(prompt);
  });

  it('ends an answer where another speaker begins', () => {
    const turns: ChatTurn[] = [
      { role: 'user', content: 'a', name: 'Ann' },
      { role: 'user', content: 'b' },
      { role: 'user', content: 'c', name: 'Ann' },
    ];
    expect(plainChatTemplate(turns).stop).toEqual(['\nUser:', '\nAnn:']);
  });
});

it('white space is dropped until the text begins, and then kept', () => {
  const pushed = (keep: boolean) => {
    const trimmer = new StartTrimmer(keep);
    return [' ', '\n', ' a ', ' ', 'b'].map(text => trimmer.push(text));
  };
  expect(pushed(false)).toEqual(['', '', 'a ', ' ', 'b']);
  expect(pushed(true)).toEqual([' ', '\n', ' a ', ' ', 'b']);
});
