import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/ts/**/*.test.ts'],
    // Machines that run tests are shared and slow; whatever takes longer than this hangs.
    testTimeout: 60_000,
  },
});
