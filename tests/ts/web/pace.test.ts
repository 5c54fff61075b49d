import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Pace } from '../../../web/src/lib/frame.ts';

const frame = 1000 / 60;

/** A browser whose frames take as long as a test says. */
class FakeBrowser {
  time = 0;
  frames: { from: number; to: number }[] = [];
  readonly #events: { at: number; run: () => void }[] = [];
  readonly #took: () => number;
  readonly pace = new Pace({
    now: () => this.time,
    setTimer: (callback, milliseconds) => this.#at(this.time + milliseconds, callback),
    requestFrame: callback => {
      this.#at((Math.floor(this.time / frame) + 1) * frame, () => {
        const from = this.time;
        const ends: (() => void)[] = [];
        this.#ends = ends;
        const to = from + this.#took();
        this.frames.push({ from, to });
        try {
          callback();
        } finally {
          for (const end of ends) this.#at(to, end);
        }
      });
    },
    afterFrame: callback => this.#ends.push(callback),
  });
  #ends: (() => void)[] = [];

  constructor(took: () => number) {
    this.#took = took;
  }

  at(time: number, run: () => void): void {
    this.#at(time, run);
  }

  /** Until nothing is left to do. */
  run(): void {
    while (this.#events.length > 0) {
      this.#events.sort((a, b) => a.at - b.at);
      const next = this.#events.shift();
      // A frame keeps everything else waiting.
      this.time = Math.max(this.time, next?.at ?? 0);
      next?.run();
    }
  }

  #at(at: number, run: () => void): void {
    this.#events.push({ at, run });
  }
}

const durations = fc.double({ min: 0.1, max: 60, noNaN: true });
const requests = fc.array(fc.double({ min: 0, max: 2000, noNaN: true }), { minLength: 1 });

it('paints what was asked for last, however fast it is asked', () => {
  fc.assert(
    fc.property(requests, durations, (times, took) => {
      const browser = new FakeBrowser(() => took);
      let [state, painted] = [0, 0];
      const paint = () => {
        painted = state;
      };
      for (const time of times) {
        browser.at(time, () => {
          state = time;
          browser.pace.add(paint);
        });
      }
      browser.run();
      expect(painted).toBe(Math.max(...times));
    }),
  );
});

it('leaves at least 40 milliseconds between frames, and three quarters of the time to others', () => {
  fc.assert(
    fc.property(requests, durations, (times, took) => {
      const browser = new FakeBrowser(() => took);
      const paint = () => {};
      for (const time of times) browser.at(time, () => browser.pace.add(paint));
      browser.run();
      for (const [i, { from }] of browser.frames.entries()) {
        const before = browser.frames[i - 1];
        if (!before) continue;
        expect(from - before.from).toBeGreaterThanOrEqual(40);
        expect(from - before.from).toBeGreaterThanOrEqual(4 * (before.to - before.from) - 1e-6);
      }
    }),
  );
});

it('paints in the next frame after a rest, and all that waits in one', () => {
  const browser = new FakeBrowser(() => 5);
  const painted: string[] = [];
  for (const time of [990, 991, 2000]) {
    browser.at(time, () => {
      browser.pace.add(() => painted.push(`text ${time}`));
      browser.pace.add(() => painted.push(`cache ${time}`));
    });
  }
  browser.run();
  expect(painted).toHaveLength(6);
  const starts = browser.frames.map(({ from }) => from);
  expect(starts[0]).toBeLessThan(990 + 2 * frame);
  expect(starts).toHaveLength(2);
  expect(starts[1]).toBeLessThan(2000 + 2 * frame);
});

it('forgets a paint that was done by hand, and paints after one that failed', () => {
  const browser = new FakeBrowser(() => 5);
  let painted = 0;
  const paint = () => painted++;
  browser.at(0, () => {
    browser.pace.add(paint);
    browser.pace.remove(paint);
  });
  browser.run();
  expect(painted).toBe(0);
  browser.at(100, () =>
    browser.pace.add(() => {
      throw new Error('a mistake');
    }),
  );
  expect(() => browser.run()).toThrow('a mistake');
  browser.at(200, () => browser.pace.add(paint));
  browser.run();
  expect(painted).toBe(1);
});
